-- extension: what a commit of core/channel may do to questions. The table extensions,
-- with the extension of core/task, is known around it. call.lua and due.lua run the
-- same functions without a commit around them.
--
-- keys: those of bind, those of tasks; for an answer by a message the hash in which
--   it is remembered
-- args: op, signal channel, number of the partition, signal channel of tasks, then
--   create    id, row, state, deadline (ms) or "", most open ones of a conversation
--   answer    id, conversation or "", JSON of who, text, option or "", how, digest of
--             the message or "", seconds to remember it, fields of an input … or, when a
--             task waits, of a reply
--   withdraw  id, conversation or "", why
-- apply gives {what it did, id}: created, exists, full; answered, seen (that message
-- was heard before), closed (before); withdrawn, by an answer where the task does not
-- wait any more; unknown.
--
-- The state of a question is a JSON object of strings and of lists of strings that
-- are never empty.
local call = redis.call

-- bind gives names to the keys that begin at keys[from]; those of tasks follow.
--   rows   hash: id → JSON of what never changes; no script looks into it
--   state  hash: id → JSON of what scripts read and change
--   index  sorted by text: "a id"; "o conversation id" while it is open
--   due    id, by its deadline (ms)     over   id, by when it was closed (ms)
--   inputs, replies  streams user-input and teller-reply
--   waiting, stops   hashes of core/channel
local function bind(keys, from, signal, p, tasksSignal)
  local K = {signal = signal, p = p, tasksSignal = tasksSignal}
  for i, name in ipairs({'rows', 'state', 'index', 'due', 'over', 'inputs', 'replies', 'waiting', 'stops'}) do K[name] = keys[from + i - 1] end
  K.tasks = {unpack(keys, from + 9)}
  return K
end

local function ms(n) return string.format('%.0f', tonumber(n)) end

local function fetch(K, id)
  local s = call('HGET', K.state, id)
  local ok, st = pcall(cjson.decode, s or '')
  if s and ok and type(st) == 'table' then return st end
  return nil
end

local function store(K, id, st) call('HSET', K.state, id, cjson.encode(st)) end

-- close ends a question. What was closed a month ago is forgotten then.
local function close(K, id, st, status, now)
  st.status, st.at, st.late = status, ms(now), nil
  call('ZREM', K.index, 'o ' .. st.conv .. ' ' .. id)
  call('ZREM', K.due, id)
  call('ZADD', K.over, ms(now), id)
  store(K, id, st)
  for _, old in ipairs(call('ZRANGEBYSCORE', K.over, '-inf', ms(now - 30 * 86400000), 'LIMIT', 0, 10)) do
    call('ZREM', K.over, old)
    call('ZREM', K.index, 'a ' .. old)
    call('HDEL', K.rows, old)
    call('HDEL', K.state, old)
  end
end

-- tell adds an entry to a stream; input hands an answer on to the conversation.
local function tell(K, st, stream, fields)
  local f = {unpack(fields)}
  f[2] = call('HGET', K.stops, st.conv) or '0'
  call('XADD', stream, '*', unpack(f))
end

local function input(K, st, fields)
  tell(K, st, K.inputs, fields)
  call('HINCRBY', K.waiting, st.conv, 1)
end

-- handOn makes the task that waits go on, and gives whether one did wait.
local function handOn(K, st, text, by, now)
  return extensions.task.apply(K.tasks, {'answer', K.tasksSignal, K.p, st.task, st.asked, text, by}, now)[1] == 'answered'
end

local function of(st, conv) return st and ((conv or '') == '' or st.conv == conv) end
local ops = {}

function ops.create(K, keys, a, now)
  local id, st = a[5], cjson.decode(a[7])
  local there = fetch(K, id)
  if there then return {there.made == st.made and 'created' or 'exists', id} end
  local o = 'o ' .. st.conv
  if call('ZLEXCOUNT', K.index, '[' .. o .. ' ', '(' .. o .. '!') >= tonumber(a[9]) then return {'full', id} end
  st.status, st.created = 'open', ms(now)
  call('HSET', K.rows, id, a[6])
  call('ZADD', K.index, 0, 'a ' .. id, 0, o .. ' ' .. id)
  if a[8] ~= '' then
    st.deadline = a[8]
    call('ZADD', K.due, a[8], id)
    call('PUBLISH', K.signal, K.p)
  end
  store(K, id, st)
  return {'created', id}
end

function ops.answer(K, keys, a, now)
  local id, seen = a[5], a[11] ~= '' and keys[#keys]
  local st = fetch(K, id)
  if seen and call('HEXISTS', seen, a[11]) == 1 then return {'seen', id} end
  if not of(st, a[6]) then return {'unknown', id} end
  if st.status ~= 'open' then return {'closed', id} end
  if (st.task or '') ~= '' and not handOn(K, st, a[8], a[7], now) then
    st.reason = 'the task does not wait for it any more'
    close(K, id, st, 'withdrawn', now)
    return {'withdrawn', id}
  end
  if seen then
    call('HSET', seen, a[11], '1')
    if call('TTL', seen) < a[12] - 7200 then call('EXPIRE', seen, a[12]) end
  end
  st.by, st.answer, st.how = a[7], a[8], a[10]
  if a[9] ~= '' then st.option = a[9] end
  if (st.task or '') ~= '' then
    tell(K, st, K.replies, {unpack(a, 13)})
  else
    input(K, st, {unpack(a, 13)})
  end
  close(K, id, st, 'answered', now)
  return {'answered', id}
end

function ops.withdraw(K, _, a, now)
  local id, st = a[5], fetch(K, a[5])
  if not of(st, a[6]) then return {'unknown', id} end
  if st.status ~= 'open' then return {'closed', id} end
  st.reason = a[7]
  close(K, id, st, 'withdrawn', now)
  return {'withdrawn', id}
end

return {
  bind = bind,
  -- late closes what nobody has answered in time.
  late = function(K, id, now)
    local st = fetch(K, id)
    if not st or st.status ~= 'open' then
      call('ZREM', K.due, id) -- of nobody
      return
    end
    st.how = 'deadline'
    local waits = (st.task or '') ~= ''
    if waits and not handOn(K, st, st.fallback or '', st.lateBy or '{}', now) then
      st.reason = 'the task does not wait for it any more'
      close(K, id, st, 'withdrawn', now)
      return
    end
    if waits and st.late then tell(K, st, K.replies, st.late)
    elseif st.late then input(K, st, st.late) end
    if (st.fallback or '') ~= '' then
      st.answer = st.fallback
      close(K, id, st, 'answered', now)
    else
      st.reason = 'nobody answered in time'
      close(K, id, st, 'withdrawn', now)
    end
  end,
  -- check runs into every key that is of another type, before anything is changed.
  check = function(keys, a)
    local K = bind(keys, 1, a[2], a[3], a[4])
    for _, key in ipairs({K.rows, K.state, K.waiting, K.stops}) do call('HLEN', key) end
    for _, key in ipairs({K.index, K.due, K.over}) do call('ZCARD', key) end
    for _, key in ipairs({K.inputs, K.replies}) do call('XLEN', key) end
    if a[1] == 'answer' and a[11] ~= '' then call('HLEN', keys[#keys]) end
    extensions.task.check(K.tasks, {'', a[4], a[3]})
  end,
  apply = function(keys, a, now) return ops[a[1]](bind(keys, 1, a[2], a[3], a[4]), keys, a, tonumber(now)) end,
}
