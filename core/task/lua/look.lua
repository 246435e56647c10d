-- look: see what there is to do in a partition, and make pending what is due. Put
-- after ends.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then claims hash, sweeper hash
-- ARGV: signal channel, number of the partition, who wants to sweep ("": nobody),
--   ms for which nobody else may then, cap of a conversation, classes …
-- Returns {commit number or 0 when nothing was written, now ms, score of the best
--   head or "", when the next deferred task is due or ""}, and to who wants to sweep
--   also {token, id, beats, …} of what runs, "1" when it is to sweep, how many
--   cancels are to be passed on, when the longest ended of the kept tasks ended
--   or "".
local K, claims, sweeper = bind(KEYS, 2, ARGV[1], ARGV[2]), KEYS[#KEYS - 1], KEYS[#KEYS]
local who, cap, classes, now, commits = ARGV[3], tonumber(ARGV[5]), {unpack(ARGV, 6)}, clock(), 0
if pour(K, now) > 0 then commits = call('INCR', KEYS[1]) end
local score, later = outlook(K, classes, cap)
local out = {commits, ms(now), score, later}
if who == '' then return out end
local runs, beats = call('HGETALL', K.runs), {}
for i = 1, #runs, 2 do
  beats[#beats + 1] = runs[i]
  beats[#beats + 1] = string.match(runs[i + 1], '^(%S+)')
  beats[#beats + 1] = call('HGET', K.beats, runs[i]) or '0'
end
local oldest = call('ZRANGE', K.ended, 0, 0, 'WITHSCORES')
out[5], out[6], out[7], out[8] = beats, '0', call('ZCARD', K.cascade), oldest[2] and ms(tonumber(oldest[2])) or ''
local has, till = unpack(call('HMGET', sweeper, 'who', 'until'))
if has and has ~= who and num(till) > now then return out end
out[6] = '1'
if has ~= who or num(till) - now < ARGV[4] / 2 then
  call('HSET', sweeper, 'who', who, 'until', ms(now + ARGV[4]))
  -- Nothing of an hour ago is still on its way.
  local list = call('HGETALL', claims)
  for i = 1, #list, 2 do
    if num(string.match(list[i + 1], '^%d+ (%d+)')) < now - 3600000 then call('HDEL', claims, list[i]) end
  end
end
return out
