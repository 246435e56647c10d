-- unmark: forget marks and return them. KEYS[1] sorted set. ARGV: the greatest score
local got = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1000)
if #got > 0 then redis.call('ZREM', KEYS[1], unpack(got)) end
return got
