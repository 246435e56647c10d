-- ingest: accept inputs, each once.
--
-- KEYS[1] commit number, KEYS[2] waiting hash, KEYS[3] stops hash, KEYS[4] user-input stream
-- KEYS[5..] hashes of seen messages
-- ARGV: most inputs that may wait in a conversation, seconds to remember,
--       then for each input: seen key index, digest, conversation, stop ("1" raises the stop number),
--       m, m fields and values
-- Returns {commit number, status …}, status: stream id when new, "seen" or "full"
-- Each entry is stamped with its conversation's stop number, so that what was said
-- before a stop is told from what was said after it.
local out, touched, convs, at = {redis.call('INCR', KEYS[1])}, {}, {}, 3
local most = tonumber(ARGV[1])
while at <= #ARGV do
  convs[#convs + 1] = ARGV[at + 2]
  at = at + 5 + ARGV[at + 4]
end
local stops = {}
for i, n in ipairs(redis.call('HMGET', KEYS[3], unpack(convs))) do stops[convs[i]] = n or '0' end
-- A script that is refused half way keeps what it did until then: a message would
-- be remembered that is in no stream. So the keys are looked at first.
redis.call('XLEN', KEYS[4])
redis.call('HLEN', KEYS[2])
for i = 5, #KEYS do redis.call('HLEN', KEYS[i]) end
at = 3
while at <= #ARGV do
  local seen, digest, conv, stop = KEYS[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3] == '1'
  local m = tonumber(ARGV[at + 4])
  local first = at + 5
  at = first + m
  local new, waits = redis.call('HSETNX', seen, digest, '1') == 1, 0
  if new then waits = redis.call('HINCRBY', KEYS[2], conv, 1) end
  if waits > most and not stop then
    -- Entries that others deleted or trimmed were never counted down. No more can
    -- wait than there are, and this one.
    local there = redis.call('XLEN', KEYS[4]) + 1
    if waits > there then
      waits = there
      redis.call('HSET', KEYS[2], conv, there)
    end
  end
  if not new then
    out[#out + 1] = 'seen'
  elseif waits > most and not stop then
    redis.call('HINCRBY', KEYS[2], conv, -1)
    redis.call('HDEL', seen, digest)
    out[#out + 1] = 'full'
  else
    touched[seen] = true
    out[#out + 1] = redis.call('XADD', KEYS[4], '*', 'stop', stops[conv], unpack(ARGV, first, at - 1))
    if stop then stops[conv] = tostring(redis.call('HINCRBY', KEYS[3], conv, 1)) end
  end
end
-- Remembering is counted from the last message added to the hour, so a late
-- message is remembered as long as any other.
for seen in pairs(touched) do
  if redis.call('TTL', seen) < tonumber(ARGV[2]) - 7200 then redis.call('EXPIRE', seen, ARGV[2]) end
end
return out
