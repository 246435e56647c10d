-- replay: put a dead letter back into its channel as a new entry, or drop it.
--
-- KEYS[1] commit number, KEYS[2] dead letters, KEYS[3] stream it came from, KEYS[4] waiting hash, KEYS[5] posts table,
-- KEYS[6] stops hash
-- ARGV: id of the dead letter, "replay" or "drop", number of leading fields that belong to the dead letter itself,
--       "1" when it came from user-input, field of the posts table to forget on a drop ("" for none), conversation
-- Returns the new stream id, "" when dropped, or false when there is no such dead letter
local got = redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[1])
if #got == 0 then return false end
redis.call('INCR', KEYS[1])
if ARGV[2] == 'drop' then
  if ARGV[5] ~= '' then redis.call('HDEL', KEYS[5], ARGV[5]) end
  redis.call('XDEL', KEYS[2], ARGV[1])
  return ''
end
-- It is said anew, after every stop that there was.
local fields = {'stop', redis.call('HGET', KEYS[6], ARGV[6]) or '0'}
for i = tonumber(ARGV[3]) + 1, #got[1][2], 2 do
  if got[1][2][i] ~= 'stop' then
    fields[#fields + 1] = got[1][2][i]
    fields[#fields + 1] = got[1][2][i + 1]
  end
end
-- The dead letter goes last: what is refused before leaves it where it is.
redis.call('HLEN', KEYS[4])
local id = redis.call('XADD', KEYS[3], '*', unpack(fields))
if ARGV[4] == '1' then redis.call('HINCRBY', KEYS[4], ARGV[6], 1) end
redis.call('XDEL', KEYS[2], ARGV[1])
return id
