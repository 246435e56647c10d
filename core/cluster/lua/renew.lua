-- renew: keep a place. KEYS[1] the place. ARGV: token, ttl ms. Returns 1, or 0 when another has it
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
