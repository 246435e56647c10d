-- due: close the questions whose deadline is over.
--
-- KEYS[1] commit number, the rest as extension's keys
-- ARGV: '', signal channel, number of the partition, signal channel of tasks, how many at most,
--   for how many ms back to tell what was closed, by whomever (0: not)
-- Returns {commit number or 0 when nothing was written, ms until the next deadline or -1,
--   {ids of what was closed before}, id …}
local keys = {unpack(KEYS, 2)}
local K = extensions.question.bind(keys, 1, ARGV[2], ARGV[3], ARGV[4])
local time = redis.call('TIME')
local now, out = time[1] * 1000 + math.floor(time[2] / 1000), {0, -1, {}}
if ARGV[6] ~= '0' then out[3] = redis.call('ZREVRANGEBYSCORE', K.over, '+inf', string.format('%.0f', now - ARGV[6]), 'LIMIT', 0, 1000) end
local ids = redis.call('ZRANGEBYSCORE', K.due, '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[5])
if #ids > 0 then
  extensions.question.check(keys, ARGV)
  out[1] = redis.call('INCR', KEYS[1])
  for _, id in ipairs(ids) do
    extensions.question.late(K, id, now)
    out[#out + 1] = id
  end
end
local next = redis.call('ZRANGE', K.due, 0, 0, 'WITHSCORES')
if next[2] then out[2] = math.max(0, tonumber(next[2]) - now) end
return out
