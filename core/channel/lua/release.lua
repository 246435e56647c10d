-- release: give a partition back, if it is still the caller's.
--
-- KEYS[1] lease hash, KEYS[2] commit number
-- ARGV: token
-- Returns 1, or 0 when somebody else owns it already
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'token', '', 'until', '0')
redis.call('INCR', KEYS[2])
return 1
