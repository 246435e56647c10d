-- acquire: take the first free place of a lease.
-- KEYS[1] epoch, KEYS[2..] the places. ARGV: token, ttl ms
-- Returns {place from 0, fence}, or {} when none is free
for i = 2, #KEYS do
  if redis.call('SET', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return {i - 2, redis.call('INCR', KEYS[1])}
  end
end
return {}
