-- cycle: everything an owner writes and reads of its partition, in one call: a
-- batch of ops, applied together when every one of them still holds, else not at
-- all; the owner then takes out those that do not and sends the rest again. All
-- lists are laid out by the owner so that they can be passed on as they stand.
--
-- KEYS[1] lease hash          KEYS[2] commit number      KEYS[3] stops hash
-- KEYS[4] waiting hash        KEYS[5] active sorted set
-- KEYS[6..5+S] streams, those that no loop reads last
-- KEYS[6+S..5+S+T] tables, the first of them the attempts
-- the rest: history lists, and keys of calls
--
-- ARGV: token, seq, ttl ms (0: do not renew), S, T, history cap,
--         "1" when XCLAIM knows FORCE with LASTID (miniredis does not), count of a read
--       S times: channel name, group ("" for none), read ("1": deliver what is new),
--         publishes ("1": the call adds to it), number of ids to settle, the ids
--       ops, their conversations, their stop numbers ("" for any)
--       calls of extensions, each: name, m, m key indexes, m, m arguments
--       history lists, each: key index, m, m lines
--       entries to publish, each: stream, begun ("1"), m, m fields and values
--       T times: m, m fields and values to set; m, m fields to remove
--       m, m conversations, for each how many inputs are no longer waiting
--       m, m scores and conversations that were active
--
-- Returns {"stale"} when the token is not the owner's, {"late"} when a newer
-- call of the same owner was served already,
-- {"no", commit number, now ms, {unsettled ids …} for each stream, stop numbers} when an op
-- does not hold: nothing was changed; else
-- {"ok", commit number, now ms, {ids published …}, {streams read}, more, stop numbers, {cuts}}
--   streams read: {stream, {{id, {field, value …}} …}}, each counted as started once;
--   entries published by this very
--   call are delivered (pending) but not repeated. more is 1 when a read was full.
--   cuts: {number of the history list in this call, lines cut off because nobody folded them}
local A, K, call = ARGV, KEYS, redis.call
local lease = call('HMGET', K[1], 'token', 'seq')
if lease[1] ~= A[1] then return {'stale'} end
if lease[2] and tonumber(lease[2]) >= tonumber(A[2]) then return {'late'} end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local commits = call('INCR', K[2])
if A[3] ~= '0' then
  call('HSET', K[1], 'seq', A[2], 'until', string.format('%.0f', now + A[3]))
else
  call('HSET', K[1], 'seq', A[2])
end
now = string.format('%.0f', now)
local S, T, cap, lean, count = tonumber(A[4]), tonumber(A[5]), tonumber(A[6]), A[7] == '1', tonumber(A[8])

-- Settling acknowledges and deletes, so an entry that was settled before is one
-- that cannot be acknowledged again.
local names, groups, read, publishes, first, settle, holds = {}, {}, {}, {}, {}, {}, true
local at = 9
for s = 1, S do
  names[s], groups[s], read[s], publishes[s] = A[at], A[at + 1], A[at + 2] == '1', A[at + 3] == '1'
  settle[s], first[s] = tonumber(A[at + 4]), at + 5
  at = first[s] + settle[s]
end
local ops, stops = tonumber(A[at]), {}
if ops > 0 then
  stops = call('HMGET', K[3], unpack(A, at + 1, at + ops))
  local gate = at + ops
  for i = 1, ops do
    stops[i] = stops[i] or '0'
    local g = A[gate + i]
    if g ~= '' and g ~= stops[i] then holds = false end
  end
  at = gate + ops
end
at = at + 1
local calls = {}
for i = 1, tonumber(A[at]) do
  local c = {f = extensions[A[at + 1]], keys = {}, args = {}}
  at = at + 2
  for j = 1, tonumber(A[at]) do c.keys[j] = K[tonumber(A[at + j])] end
  at = at + #c.keys + 1
  for j = 1, tonumber(A[at]) do c.args[j] = A[at + j] end
  at = at + #c.args
  calls[i] = c
end
-- A script that is refused half way keeps what it did until then. So what can be
-- refused comes first: a stream without its group here, a history of another type
-- below. The other keys were looked at when the owner began.
for s = 1, S do
  if groups[s] ~= '' and (settle[s] > 0 or publishes[s]) then call('XPENDING', K[5 + s], groups[s]) end
end
for _, c in ipairs(calls) do c.f.check(c.keys, c.args) end
if holds then
  for s = 1, S do
    if settle[s] > 0 and call('XACK', K[5 + s], groups[s], unpack(A, first[s], first[s] + settle[s] - 1)) < settle[s] then
      holds = false
    end
  end
end
-- takeBack takes back what was acknowledged: an entry that is still there was
-- pending.
local function takeBack()
  local unsettled = {}
  for s = 1, S do
    unsettled[s] = {}
    for i = first[s], first[s] + settle[s] - 1 do
      if #call('XRANGE', K[5 + s], A[i], A[i]) > 0 then
        call('XCLAIM', K[5 + s], groups[s], 'owner', 0, A[i], 'FORCE', 'JUSTID')
        unsettled[s][#unsettled[s] + 1] = A[i]
      end
    end
  end
  return unsettled
end
if not holds then return {'no', commits, now, takeBack(), stops} end
at = at + 1

local n, pushed = tonumber(A[at]), {}
at = at + 1
for i = 1, n do
  local key, m = K[tonumber(A[at])], tonumber(A[at + 1])
  local got = redis.pcall('RPUSH', key, unpack(A, at + 2, at + 1 + m))
  if type(got) == 'table' then
    for _, p in ipairs(pushed) do call('LTRIM', p[1], 0, -1 - p[2]) end
    takeBack()
    return got
  end
  pushed[i] = {key, m, got}
  at = at + 2 + m
end
local cuts = {}
for i, p in ipairs(pushed) do
  -- A list may be there twice, so what is over is asked for.
  local over = p[3] > cap + 100 and call('LLEN', p[1]) - cap or 0
  if over > 0 then
    call('LTRIM', p[1], over, -1)
    cuts[#cuts + 1] = {i, over}
  end
end

local out, more, begun = {}, 0, {}
-- deliver delivers what is new in a stream; own says which ids the owner has in
-- memory already. The first start of a step with an entry is counted here, ahead:
-- it mostly follows at once, and so costs no call of its own.
local function deliver(s, own)
  local got = call('XREADGROUP', 'GROUP', groups[s], 'owner', 'COUNT', count, 'STREAMS', K[5 + s], '>')
  local entries = got and got[1] and got[1][2] or {}
  local others = {}
  for _, e in ipairs(entries) do
    if not (own and own[e[1]]) then
      others[#others + 1] = e
      begun[#begun + 1] = names[s] .. ':' .. e[1]
      begun[#begun + 1] = '1'
    end
    if own and e[1] == own.last then own.done = true end
  end
  if #others > 0 then out[#out + 1] = {s, others} end
  if #entries == count then more = 1 end
  return #entries
end

local published, fresh = {}, {}
n = tonumber(A[at])
at = at + 1
for i = 1, n do
  local s, m = tonumber(A[at]), tonumber(A[at + 2])
  local own = fresh[s]
  if not own and groups[s] ~= '' then
    own = {list = {}}
    fresh[s] = own
    if lean then
      -- What others have put there stands before what this call publishes.
      while deliver(s) == count do end
      read[s] = false
    end
  end
  local id = call('XADD', K[5 + s], '*', unpack(A, at + 3, at + 2 + m))
  published[i] = id
  if own then
    own.last = id
    if lean then own.list[#own.list + 1] = id else own[id] = true end
  end
  if A[at + 1] == '1' then
    begun[#begun + 1] = names[s] .. ':' .. id
    begun[#begun + 1] = '1'
  end
  at = at + 3 + m
end
for s = 1, S do
  if settle[s] > 0 then
    call('XDEL', K[5 + s], unpack(A, first[s], first[s] + settle[s] - 1))
  end
end

for t = 1, T do
  n = tonumber(A[at])
  if n > 0 then call('HSET', K[5 + S + t], unpack(A, at + 1, at + n)) end
  at = at + n + 1
  n = tonumber(A[at])
  if n > 0 then call('HDEL', K[5 + S + t], unpack(A, at + 1, at + n)) end
  at = at + n + 1
end

for _, c in ipairs(calls) do c.f.apply(c.keys, c.args, now) end

n = tonumber(A[at])
if n > 0 then
  local set, del = {}, {}
  for i, had in ipairs(call('HMGET', K[4], unpack(A, at + 1, at + n))) do
    local left = tonumber(had or '0') - A[at + n + i]
    if left > 0 then
      set[#set + 1] = A[at + i]
      set[#set + 1] = left
    else
      del[#del + 1] = A[at + i]
    end
  end
  if #set > 0 then call('HSET', K[4], unpack(set)) end
  if #del > 0 then call('HDEL', K[4], unpack(del)) end
end
at = at + 2 * n + 1
n = tonumber(A[at])
if n > 0 then call('ZADD', K[5], unpack(A, at + 1, at + n)) end

-- Deliver. What this call published must become pending now, so that the owner,
-- who has it in memory, can settle it in its next call.
for s = 1, S do
  local own = fresh[s]
  if own and lean then
    local claim = own.list
    for _, word in ipairs({'FORCE', 'JUSTID', 'LASTID', own.last}) do claim[#claim + 1] = word end
    call('XCLAIM', K[5 + s], groups[s], 'owner', 0, unpack(claim))
  elseif groups[s] ~= '' and (read[s] or own) then
    repeat
      local got = deliver(s, own)
    until not own or own.done or got == 0
  end
end
if #begun > 0 then call('HSET', K[6 + S], unpack(begun)) end
return {'ok', commits, now, published, out, more, stops, cuts}
