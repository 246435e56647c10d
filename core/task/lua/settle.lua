-- settle: end runs, each judged alone. Put after ends.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then for each run the keys of its
--   task's whole output and of its checkpoint
-- ARGV: signal channel, number of the partition, most lapses, longest backoff (ms),
--   then for each run: token, id, how it ended, beats of a lapse ("": any), JSON of
--   what goes into the state, JSON of counts to add to the usage ("": none), the
--   whole of a long output ("": none)
-- How: succeed; fail, with another try if the task has one left; final, without;
--   back, as if it had not begun; hold, likewise and deferred by the "hold" (ms) of
--   what goes into the state; cut, as one that lost its Redis; lapse; ask.
-- Returns {commit number, {the status it has now, when it is due or ""} …}, "lost" in
-- place of the status when the token is of no run, and "alive" when the beats have
-- changed. A repeat is answered like the first.
local commits = call('INCR', KEYS[1])
local K, now = bind(KEYS, 2, ARGV[1], ARGV[2]), clock()
local mostLapses, longest = tonumber(ARGV[3]), tonumber(ARGV[4])
local gone, dropped = {}, {}

local function settle(token, id, how, beats, said, usage, whole, output, checkpoint)
  local st = fetch(K, id)
  if st and st.run ~= token and st.settled == token then return {st.verdict, st.due or ''} end
  if not st or st.run ~= token or st.status ~= 'running' then
    if not st and string.match(call('HGET', K.runs, id) or '', '^%S+') == token then gone[#gone + 1] = id end
    return {'lost', ''}
  end
  if beats ~= '' and string.match(call('HGET', K.runs, id) or '', '^%S+ %d+ (%d+)') ~= beats then return {'alive', ''} end

  gone[#gone + 1] = id
  if st.capped then
    if call('HINCRBY', K.load, st.conv, -1) <= 0 then call('HDEL', K.load, st.conv) end
    unpark(K, st.conv, now)
  end
  if how ~= 'hold' then
    st.ran = ms(num(st.ran) + math.max(0, now - num(st.runStarted)))
  elseif st.attempts == '1' and st.started == st.runStarted then
    st.started, st.attempts = nil, '0'
  end
  if st.notes ~= '0' then st.kept = '1' end
  st.run, st.node, st.runStarted, st.capped, st.notes, st.settled = nil, nil, nil, nil, nil, token
  if usage ~= '' then
    for name, n in pairs(cjson.decode(usage)) do
      st.usage = st.usage or {}
      st.usage[name] = ms(num(st.usage[name]) + num(n))
    end
  end
  said = cjson.decode(said)

  local to
  if how == 'cut' then
    st.cuts = ms(num(st.cuts) + 1)
    if num(st.cuts) > 10 then how = 'lapse' end
  end
  if how == 'lapse' then
    st.lapses = ms(num(st.lapses) + 1)
    said = {error = 'the worker was gone ' .. st.lapses .. ' times', reason = 'killed'}
  end
  if st.cancelAt then
    to = 'canceled'
  elseif how == 'succeed' then
    to = 'succeeded'
  elseif how == 'final' or (how == 'lapse' and num(st.lapses) >= mostLapses) then
    to = 'failed'
  elseif how == 'hold' then
    to = 'deferred'
  elseif how == 'fail' then
    to = num(st.retried) < num(st.retries) and 'deferred' or 'failed'
  elseif how == 'ask' then
    to = 'waiting'
  else
    to = 'pending'
  end
  st.verdict = to
  -- What an earlier run has said of its failure is not said of this one.
  if how ~= 'hold' then st.error, st.reason = nil, nil end
  if to == 'deferred' and how ~= 'hold' then
    st.error, st.reason = said.error, said.reason
  elseif to ~= 'pending' and how ~= 'hold' then
    for name, v in pairs(said) do st[name] = v end
  end
  if to == 'canceled' then st.error, st.reason = nil, nil end

  if how == 'hold' and to == 'deferred' then
    st.due = ms(now + num(said.hold)) -- it keeps its age
    defer(K, id, st)
  elseif to == 'deferred' then
    st.retried, st.attempts = ms(num(st.retried) + 1), ms(num(st.attempts) + 1)
    local wait = math.min(num(st.backoff) * 2 ^ (num(st.retried) - 1), longest)
    st.due, st.enqueued = ms(now + wait), nil
    defer(K, id, st)
    note(K, id, st, 'worker_retry', now)
  elseif to == 'pending' then
    if how == 'lapse' then st.attempts = ms(num(st.attempts) + 1) end
    enqueue(K, id, st, now)
  elseif to == 'waiting' then
    st.enqueued = nil
    move(K, id, st, to)
    tell(K, K.events, id, st, 1, result(st))
  else
    if whole ~= '' then call('SET', output, whole) end
    if st.kept then dropped[#dropped + 1] = checkpoint end
    st.kept = nil
    if to == 'failed' then note(K, id, st, 'worker_error', now) end
    finish(K, id, st, to, now)
  end
  store(K, id, st)
  return {to, st.due or ''}
end

local n, ids, out = (#ARGV - 4) / 7, {}, {commits}
for i = 1, n do ids[i] = ARGV[4 + 7 * i - 5] end
fetchAll(K, ids)
for i = 1, n do
  local a, k = 4 + 7 * (i - 1), #KEYS - 2 * (n - i) - 1
  out[i + 1] = settle(ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], KEYS[k], KEYS[k + 1])
end
if #gone > 0 then call('HDEL', K.runs, unpack(gone)) end
if #dropped > 0 then call('DEL', unpack(dropped)) end
flush(K)
return out
