-- release: give a claim back, if it is still the caller's.
--
-- KEYS[1] claim
-- ARGV: token
-- Returns 1 when it was given back
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
