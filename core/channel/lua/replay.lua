-- replay: put a dead letter back into its channel as a new entry, or drop it.
--
-- KEYS[1] commit number, KEYS[2] dead letters, KEYS[3] stream it came from, KEYS[4] waiting hash, KEYS[5] posts table
-- ARGV: id of the dead letter, "replay" or "drop", number of leading fields that belong to the dead letter itself,
--       "1" when it came from user-input, field of the posts table to forget on a drop ("" for none), conversation
-- Returns the new stream id, "" when dropped, or false when there is no such dead letter
local got = redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[1])
if #got == 0 then return false end
redis.call('INCR', KEYS[1])
redis.call('XDEL', KEYS[2], ARGV[1])
if ARGV[2] == 'drop' then
  if ARGV[5] ~= '' then redis.call('HDEL', KEYS[5], ARGV[5]) end
  return ''
end
local fields = got[1][2]
if ARGV[4] == '1' then redis.call('HINCRBY', KEYS[4], ARGV[6], 1) end
return redis.call('XADD', KEYS[3], '*', unpack(fields, tonumber(ARGV[3]) + 1))
