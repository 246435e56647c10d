-- nodes: show that a node lives, forget those that do not, list the rest.
--
-- KEYS[1] nodes sorted set
-- ARGV: node, ms after which a silent node is forgotten (0: forget the caller)
-- Returns the live nodes
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[2] == '0' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[2]))
end
return redis.call('ZRANGE', KEYS[1], 0, -1)
