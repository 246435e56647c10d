-- heard: move a mark forward. KEYS[1] sorted set conversation -> ms, KEYS[2] hash conversation -> id
-- ARGV: conversation, id, ms, ms before which marks are forgotten
-- Ids are compared as decimal numbers of any length: by the digits before the point, then by those after it.
local function split(id) return string.match(id, '^0*(%d*)%.?(%d*)$') end
local function less(a, b)
  local ai, af = split(a)
  local bi, bf = split(b)
  if #ai ~= #bi then return #ai < #bi end
  if ai ~= bi then return ai < bi end
  return af < bf
end
local old = redis.call('HGET', KEYS[2], ARGV[1])
if old and not less(old, ARGV[2]) then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[4], 'LIMIT', 0, 100)
if #gone > 0 then
  redis.call('HDEL', KEYS[2], unpack(gone))
  redis.call('ZREM', KEYS[1], unpack(gone))
end
return 1
