-- settle: end a run. Put after ends.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then keys of the task's whole
--   output and of its checkpoint
-- ARGV: signal channel, number of the partition, token, id, how it ended, beats of a
--   lapse ("": any), most lapses, longest backoff (ms), JSON of what goes into the
--   state, JSON of counts to add to the usage, the whole of a long output ("": none)
-- How: succeed; fail, with another try if the task has one left; final, without;
--   back, as if it had not begun; lapse; ask.
-- Returns {commit number, the status it has now, when it is due or ""}, "lost" in
-- place of the status when the token is of no run, and "alive" when the beats have
-- changed. A repeat is answered like the first.
local commits = call('INCR', KEYS[1])
local K = bind(KEYS, 2, ARGV[1], ARGV[2])
local output, checkpoint = KEYS[#KEYS - 1], KEYS[#KEYS]
local token, id, how, now = ARGV[3], ARGV[4], ARGV[5], clock()
local st = fetch(K, id)
if st and st.run ~= token and st.settled == token then return {commits, st.verdict, st.due or ''} end
if not st or st.run ~= token or st.status ~= 'running' then
  call('HDEL', K.runs, token)
  call('HDEL', K.beats, token)
  return {commits, 'lost', ''}
end
if ARGV[6] ~= '' and call('HGET', K.beats, token) ~= ARGV[6] then return {commits, 'alive', ''} end

call('HDEL', K.runs, token)
call('HDEL', K.beats, token)
if call('HINCRBY', K.load, st.conv, -1) <= 0 then call('HDEL', K.load, st.conv) end
unpark(K, st.conv, now)
st.ran = ms(num(st.ran) + math.max(0, now - num(st.runStarted)))
st.run, st.node, st.runStarted, st.settled = nil, nil, nil, token
for name, n in pairs(cjson.decode(ARGV[10])) do
  st.usage = st.usage or {}
  st.usage[name] = ms(num(st.usage[name]) + num(n))
end
local said = cjson.decode(ARGV[9])

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
elseif how == 'final' or (how == 'lapse' and num(st.lapses) >= num(ARGV[7])) then
  to = 'failed'
elseif how == 'fail' then
  to = num(st.retried) < num(st.retries) and 'deferred' or 'failed'
elseif how == 'ask' then
  to = 'waiting'
else
  to = 'pending'
end
st.verdict = to
-- What an earlier run has said of its failure is not said of this one.
st.error, st.reason = nil, nil
if to == 'deferred' then
  st.error, st.reason = said.error, said.reason
elseif to ~= 'pending' then
  for name, v in pairs(said) do st[name] = v end
end
if to == 'canceled' then st.error, st.reason = nil, nil end

if to == 'deferred' then
  st.retried, st.attempts = ms(num(st.retried) + 1), ms(num(st.attempts) + 1)
  local wait = math.min(num(st.backoff) * 2 ^ (num(st.retried) - 1), tonumber(ARGV[8]))
  st.due, st.enqueued = ms(now + wait), nil
  move(K, id, st, to)
  call('ZADD', K.deferred, st.due, id)
  signal(K, 'wake ' .. K.p)
  note(K, st, 'worker_retry', now)
elseif to == 'pending' then
  if how == 'lapse' then st.attempts = ms(num(st.attempts) + 1) end
  enqueue(K, id, st, now)
elseif to == 'waiting' then
  st.enqueued = nil
  move(K, id, st, to)
  tell(K, K.events, st, result(st))
else
  if ARGV[11] ~= '' then call('SET', output, ARGV[11]) end
  call('DEL', checkpoint)
  if to == 'failed' then note(K, st, 'worker_error', now) end
  finish(K, id, st, to, now)
end
store(K, id, st)
return {commits, to, st.due or ''}
