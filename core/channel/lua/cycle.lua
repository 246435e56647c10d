-- cycle: everything an owner writes and reads of its partition, in one call.
--
-- KEYS[1] lease hash          KEYS[2] commit number      KEYS[3] stops hash
-- KEYS[4] waiting hash        KEYS[5] active sorted set
-- KEYS[6..5+S] streams, the last of them the dead letters
-- KEYS[6+S..5+S+T] tables, the first of them the attempts
-- the rest: history lists
--
-- ARGV: token, seq, ttl ms (0: do not renew), S, T, history cap
--       S times: channel name, group ("" for none), read ("1": deliver what is new)
--       count of a read
--       number of ops, each: conversation, history key index (0: none),
--         stop number it must not be older than ("" for any), settle ("1") or only check ("0"),
--         n, n times: stream, id;
--         n, n times: stream, begun ("1"), m, m fields and values;
--         n, n history lines;
--         n, n times: table, field, value ("" removes)
--
-- Returns {"stale"} when the token is not the owner's, {"late"} when a newer
-- call of the same owner was served already; else
-- {"ok", commit number, now ms, {op answers}, {streams read}, more}
--   op answer: {status, stop number, ids published …}, status 1 done,
--   0 its entries are settled already, 2 stopped
--   streams read: {stream, {{id, {field, value …}} …}}; entries published by this very
--   call are delivered (pending) but not repeated. more is 1 when a read was full.
local A, K = ARGV, KEYS
local lease = redis.call('HMGET', K[1], 'token', 'seq')
if lease[1] ~= A[1] then return {'stale'} end
if lease[2] and tonumber(lease[2]) >= tonumber(A[2]) then return {'late'} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local commits = redis.call('INCR', K[2])
if A[3] ~= '0' then
  redis.call('HSET', K[1], 'seq', A[2], 'until', string.format('%.0f', now + A[3]))
else
  redis.call('HSET', K[1], 'seq', A[2])
end
local S, T, cap = tonumber(A[4]), tonumber(A[5]), tonumber(A[6])
local at = 7
local function take()
  local v = A[at]
  at = at + 1
  return v
end
local names, groups, read = {}, {}, {}
for s = 1, S do
  names[s], groups[s], read[s] = take(), take(), take() == '1'
end
local count = tonumber(take())
local attempts = 6 + S

-- Read the ops, and gather what must be looked up for all of them at once.
local ops, ids, convs = {}, {}, {}
for i = 1, tonumber(take()) do
  local op = {conv = take(), history = tonumber(take()), stop = take(), settle = take() == '1'}
  op.entries, op.publish, op.lines, op.puts = {}, {}, {}, {}
  for e = 1, tonumber(take()) do
    local s, id = tonumber(take()), take()
    op.entries[e] = {s, id}
    ids[s] = ids[s] or {}
    ids[s][#ids[s] + 1] = id
  end
  for n = 1, tonumber(take()) do
    local p = {tonumber(take()), take() == '1'}
    local m = tonumber(take())
    for f = 1, m do p[2 + f] = A[at + f - 1] end
    at = at + m
    op.publish[n] = p
  end
  for n = 1, tonumber(take()) do op.lines[n] = take() end
  for n = 1, tonumber(take()) do op.puts[n] = {tonumber(take()), take(), take()} end
  ops[i] = op
  convs[#convs + 1] = op.conv
end

-- An entry is unsettled exactly when it is pending in its group.
local pending = {}
for s, list in pairs(ids) do
  pending[s] = {}
  list[#list + 1] = 'JUSTID'
  for _, id in ipairs(redis.call('XCLAIM', K[5 + s], groups[s], 'owner', 0, unpack(list))) do
    pending[s][id] = true
  end
end
local stops = {}
if #convs > 0 then stops = redis.call('HMGET', K[3], unpack(convs)) end

local answers, settled, puts, waited, active, fresh = {}, {}, {}, {}, {}, {}
local function put(table, field, value)
  puts[table] = puts[table] or {}
  puts[table][field] = value
end
for i, op in ipairs(ops) do
  local stop = stops[i] or '0'
  local status = 1
  for _, e in ipairs(op.entries) do
    if not pending[e[1]][e[2]] then status = 0 end
  end
  if status == 1 and op.stop ~= '' and op.stop ~= stop then status = 2 end
  local answer = {status, stop}
  if status == 1 then
    for _, p in ipairs(op.publish) do
      local s = p[1]
      local id = redis.call('XADD', K[5 + s], '*', unpack(p, 3))
      answer[#answer + 1] = id
      if groups[s] ~= '' then
        fresh[s] = fresh[s] or {}
        fresh[s][id] = true
        fresh[s].last = id
      end
      if p[2] then put(attempts, names[s] .. ':' .. id, '1') end
    end
    if #op.lines > 0 then
      local len = redis.call('RPUSH', K[op.history], unpack(op.lines))
      if len > cap + 100 then redis.call('LTRIM', K[op.history], -cap, -1) end
      active[op.conv] = true
    end
    for _, p in ipairs(op.puts) do put(attempts - 1 + p[1], p[2], p[3]) end
    if op.settle then
      for _, e in ipairs(op.entries) do
        local s, id = e[1], e[2]
        pending[s][id] = nil
        settled[s] = settled[s] or {}
        settled[s][#settled[s] + 1] = id
        put(attempts, names[s] .. ':' .. id, '')
        if names[s] == 'user-input' then waited[op.conv] = (waited[op.conv] or 0) + 1 end
      end
    end
  end
  answers[i] = answer
end
for s, list in pairs(settled) do
  redis.call('XACK', K[5 + s], groups[s], unpack(list))
  redis.call('XDEL', K[5 + s], unpack(list))
end
for table, fields in pairs(puts) do
  local set, del = {}, {}
  for f, v in pairs(fields) do
    if v == '' then
      del[#del + 1] = f
    else
      set[#set + 1] = f
      set[#set + 1] = v
    end
  end
  if #set > 0 then redis.call('HSET', K[table], unpack(set)) end
  if #del > 0 then redis.call('HDEL', K[table], unpack(del)) end
end
local less, order = {}, {}
for conv in pairs(waited) do order[#order + 1] = conv end
if #order > 0 then
  local set, del = {}, {}
  for i, n in ipairs(redis.call('HMGET', K[4], unpack(order))) do
    local left = tonumber(n or '0') - waited[order[i]]
    if left > 0 then
      set[#set + 1] = order[i]
      set[#set + 1] = left
    else
      del[#del + 1] = order[i]
    end
  end
  if #set > 0 then redis.call('HSET', K[4], unpack(set)) end
  if #del > 0 then redis.call('HDEL', K[4], unpack(del)) end
end
for conv in pairs(active) do
  less[#less + 1] = string.format('%.0f', now)
  less[#less + 1] = conv
end
if #less > 0 then redis.call('ZADD', K[5], unpack(less)) end

-- Deliver. What this call published must become pending now, so that the owner,
-- who has it in memory, can settle it in its next call.
local out, more = {}, 0
for s = 1, S do
  local own = fresh[s]
  if groups[s] ~= '' and (read[s] or own) then
    repeat
      local got = redis.call('XREADGROUP', 'GROUP', groups[s], 'owner', 'COUNT', count, 'STREAMS', K[5 + s], '>')
      local entries = got and got[1] and got[1][2] or {}
      local others = {}
      for _, e in ipairs(entries) do
        if not (own and own[e[1]]) then others[#others + 1] = e end
        if own and e[1] == own.last then own.done = true end
      end
      if #others > 0 then out[#out + 1] = {s, others} end
      if #entries == count then more = 1 end
    until not own or own.done or #entries == 0
  end
end
return {'ok', commits, string.format('%.0f', now), answers, out, more}
