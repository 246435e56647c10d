-- publish: put an entry into a channel without an input to settle, once for a
-- commit id; a repeat is answered with the first answer.
--
-- KEYS[1] commit number, KEYS[2] hash of seen ids, KEYS[3] stream
-- ARGV: digest of the commit id, seconds to remember, fields and values …
-- Returns {commit number, stream id}
local commits = redis.call('INCR', KEYS[1])
local id = redis.call('HGET', KEYS[2], ARGV[1])
if id then return {commits, id} end
id = redis.call('XADD', KEYS[3], '*', unpack(ARGV, 3))
redis.call('HSET', KEYS[2], ARGV[1], id)
redis.call('EXPIRE', KEYS[2], ARGV[2])
return {commits, id}
