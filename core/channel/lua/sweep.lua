-- sweep: remove what is kept of a conversation that was idle for long.
--
-- KEYS[1] lease hash, KEYS[2] commit number, KEYS[3] active sorted set, KEYS[4] stops hash, KEYS[5] history list,
-- KEYS[6] waiting hash
-- ARGV: token, conversation, ms since when it must have been idle
-- Returns {"stale"} or {"ok", 1 when it was removed}
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return {'stale'} end
local last = redis.call('ZSCORE', KEYS[3], ARGV[2])
if not last or tonumber(last) > tonumber(ARGV[3]) or redis.call('HEXISTS', KEYS[6], ARGV[2]) == 1 then return {'ok', 0} end
redis.call('INCR', KEYS[2])
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[4], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[2])
return {'ok', 1}
