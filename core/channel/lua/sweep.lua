-- sweep: remove what is kept of a conversation that was idle for long.
--
-- KEYS[1] lease hash, KEYS[2] commit number, KEYS[3] active sorted set, KEYS[4] stops hash, KEYS[5] history list,
-- KEYS[6] waiting hash, KEYS[7] summary hash
-- ARGV: token, conversation, ms since when it must have been idle,
--       "1" when it is removed even though its history is not folded, ms that the summary is kept
-- Returns {"stale"} or {"ok", 0 when it is not idle, 1 when it was removed, 2 when its
-- history is to be folded first; lines that were removed without}
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return {'stale'} end
local last = redis.call('ZSCORE', KEYS[3], ARGV[2])
if not last or tonumber(last) > tonumber(ARGV[3]) or redis.call('HEXISTS', KEYS[6], ARGV[2]) == 1 then return {'ok', 0, 0} end
local lines = redis.call('LLEN', KEYS[5])
if lines > 0 and ARGV[4] ~= '1' then return {'ok', 2, lines} end
redis.call('INCR', KEYS[2])
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[4], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[2])
redis.call('PEXPIRE', KEYS[7], ARGV[5])
return {'ok', 1, lines}
