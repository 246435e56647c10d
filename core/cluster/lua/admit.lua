-- admit: count something once among the first so many of a time.
-- KEYS[1] those that were admitted, KEYS[2] exists once somebody was told of a refusal
-- ARGV: what it is, how many at most, ms to remember, ms to remember once something was
-- not admitted
-- Returns 1 when it is admitted, as it always is again; 0 when it is not, and 2 when it
-- is the first that is not
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 1 end
if redis.call('SCARD', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('SADD', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 1
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
if redis.call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[4]) then return 2 end
return 0
