-- ingest: accept inputs, each once.
--
-- KEYS[1] commit number, KEYS[2] waiting hash, KEYS[3] stops hash, KEYS[4] user-input stream
-- KEYS[5..] hashes of seen messages
-- ARGV: most inputs that may wait in a conversation, seconds to remember,
--       then for each input: seen key index, digest, conversation, stop ("1" raises the stop number),
--       m, m fields and values
-- Returns {commit number, status …}, status: stream id when new, "seen" or "full"
local out, touched, at = {redis.call('INCR', KEYS[1])}, {}, 3
while at <= #ARGV do
  local seen, digest, conv, stop = KEYS[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3] == '1'
  local m = tonumber(ARGV[at + 4])
  local fields = {}
  for i = 1, m do fields[i] = ARGV[at + 4 + i] end
  at = at + 5 + m
  if redis.call('HSETNX', seen, digest, '1') == 0 then
    out[#out + 1] = 'seen'
  elseif redis.call('HINCRBY', KEYS[2], conv, 1) > tonumber(ARGV[1]) and not stop then
    redis.call('HINCRBY', KEYS[2], conv, -1)
    redis.call('HDEL', seen, digest)
    out[#out + 1] = 'full'
  else
    touched[seen] = true
    if stop then redis.call('HINCRBY', KEYS[3], conv, 1) end
    out[#out + 1] = redis.call('XADD', KEYS[4], '*', unpack(fields))
  end
end
-- Remembering is counted from the last message added to the hour, so a late
-- message is remembered as long as any other.
for seen in pairs(touched) do
  if redis.call('TTL', seen) < tonumber(ARGV[2]) - 7200 then redis.call('EXPIRE', seen, ARGV[2]) end
end
return out
