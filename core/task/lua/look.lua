-- look: see what there is to do in a partition, make pending what is due, and tell
-- the people whose tasks wait for a storage that is gone. Put after ends, turn and pour.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then claims hash, sweeper hash,
--   storages hash
-- ARGV: signal channel, number of the partition, who wants to sweep ("": nobody),
--   ms for which nobody else may then, cap of a conversation, how many heads to look
--   ahead, ms after which a storage is told to be gone, m, m storages that are mounted
--   here, classes …
-- Returns {commit number or 0 when nothing was written, now ms, {scores of the best
--   heads …, "more"}, when the next deferred task is due or ""}, and to who wants to
--   sweep also {token, id, beats, …} of what runs, "1" when it is to sweep, how many
--   cancels are to be passed on, when the longest ended of the kept tasks ended
--   or "", how many people were told of their storage.
--
-- storages: storage → when it was last seen mounted, or its lack was first seen (ms);
-- "" → when that was looked at last. It is there while tasks wait for storages.
local K, claims, sweeper, storages = bind(KEYS, 2, ARGV[1], ARGV[2]), KEYS[#KEYS - 2], KEYS[#KEYS - 1], KEYS[#KEYS]
local who, lease, cap, further, patience = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local mounted, now = {unpack(ARGV, 9, 8 + tonumber(ARGV[8]))}, clock()
local classes = {unpack(ARGV, 9 + #mounted)}
local told = 0

-- missing tells of the tasks that wait for a storage, at most some hundred.
local function missing(storage)
  for _, m in ipairs(under(K, 'index', 'n ' .. storage, 100)) do
    local id = last(m)
    local st = fetch(K, id)
    mark(K, 'index', m, false)
    if st and st.status == 'pending' and storageOf(st.class) == storage then
      st.away = ms(now)
      tell(K, K.results, id, st, 1, ',"status":"pending","failureReason":"storage_away","error":' ..
        cjson.encode('the storage of its files has been mounted nowhere for ' .. math.floor(patience / 60000) .. ' minutes; it goes on by itself once that is back, "retry ' .. id .. '" starts it with empty files, and "cancel ' .. id .. '" ends it') .. '}')
      store(K, id, st)
      told = told + 1
    end
  end
end

-- watch notes what is mounted, and finds what is not.
local function watch(ours)
  local m = call('ZRANGEBYLEX', K.index, '[n ', '(n!', 'LIMIT', 0, 1)[1]
  if not m then
    if ours then call('DEL', storages) end
    return
  end
  -- Time counts only while somebody looks.
  if now - num(call('HGET', storages, '')) > math.max(patience / 2, 60000) then call('DEL', storages) end
  local set = {'', ms(now)}
  for _, s in ipairs(mounted) do
    set[#set + 1] = s
    set[#set + 1] = ms(now)
  end
  call('HSET', storages, unpack(set))
  while ours and m do
    local storage = string.match(m, '^n (%S+)')
    local seen = call('HGET', storages, storage)
    if not seen then
      call('HSET', storages, storage, ms(now))
    elseif now - num(seen) >= patience then
      missing(storage)
    end
    m = call('ZRANGEBYLEX', K.index, '(n ' .. storage .. '!', '(n!', 'LIMIT', 0, 1)[1]
  end
end

local poured, due = 0, nextDue(K)
if due and due <= now then
  poured = pour(K, now)
  due = nextDue(K)
end
local list, more = ahead(K, classes, further)
local out = {0, ms(now), outlook(K, list, more, cap), due and ms(due) or ''}
if who ~= '' then
  local runs, beats = call('HGETALL', K.runs), {}
  for i = 1, #runs, 2 do
    local token, count = string.match(runs[i + 1], '^(%S+) %d+ (%d+)')
    beats[#beats + 1] = token or ''
    beats[#beats + 1] = runs[i]
    beats[#beats + 1] = count or ''
  end
  local oldest = call('ZRANGE', K.ended, 0, 0, 'WITHSCORES')
  out[5], out[6], out[7], out[8], out[9] = beats, '0', call('ZCARD', K.cascade), oldest[2] and ms(tonumber(oldest[2])) or '', 0
  local has, till = unpack(call('HMGET', sweeper, 'who', 'until'))
  local ours = not has or has == who or num(till) <= now
  settleMarks(K, 'index')
  watch(ours)
  out[9] = told
  if ours then
    out[6] = '1'
    if has ~= who or num(till) - now < lease / 2 then
      call('HSET', sweeper, 'who', who, 'until', ms(now + lease))
      -- Nothing of an hour ago is still on its way.
      local old = call('HGETALL', claims)
      for i = 1, #old, 2 do
        if num(string.match(old[i + 1], '^%d+ (%d+)')) < now - 3600000 then call('HDEL', claims, old[i]) end
      end
    end
  end
end
flush(K)
if poured > 0 or told > 0 then out[1] = call('INCR', KEYS[1]) end
return out
