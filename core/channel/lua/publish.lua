-- publish: put an entry into a channel without an input to settle, once for a
-- commit id; a repeat is answered with the first answer. One that answers a message
-- in place of the loops has that message remembered as heard, and is not published
-- when it was heard before.
--
-- KEYS[1] commit number, KEYS[2] hash of seen ids, KEYS[3] stream
-- ARGV: digest of the commit id, seconds to remember, digest of the message or "",
--   fields and values …
-- Returns {commit number, "new" or "seen"}
local commits = redis.call('INCR', KEYS[1])
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return {commits, 'seen'} end
if ARGV[3] ~= '' and redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 then return {commits, 'seen'} end
local id = redis.call('XADD', KEYS[3], '*', unpack(ARGV, 4))
redis.call('HSET', KEYS[2], ARGV[1], id)
if ARGV[3] ~= '' then redis.call('HSET', KEYS[2], ARGV[3], '1') end
redis.call('EXPIRE', KEYS[2], ARGV[2])
return {commits, 'new'}
