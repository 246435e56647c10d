-- Adds files, and drops the oldest beyond a bound.
-- KEYS: hash of files, zset of their times
-- ARGV: how many are kept, for how long (ms), then time, id and JSON of each
for i = 3, #ARGV, 3 do
  redis.call('HSET', KEYS[1], ARGV[i + 1], ARGV[i + 2])
  redis.call('ZADD', KEYS[2], ARGV[i], ARGV[i + 1])
end
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[1])
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, over - 1)) do
    redis.call('HDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
