-- Sets an estimate aside if the subject's budget has anything left.
--
-- KEYS  1 totals (hash)  2 reservations (zset: member "id|tokens|money", score = end in ms)
-- ARGV  1 member  2 tokens  3 money  4 time to live in ms
--       5 limit of tokens, 0 for none  6 limit of money, 0 for none  7 end of totals, Unix seconds
-- Gives {admitted 1|0, unit that is spent ("tokens"|"money"|""), spent tokens, spent money, reserved tokens, reserved money}
--
-- Sums are kept by HINCRBY and passed on as the strings they are: a Lua number
-- is written short above 14 digits.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function take(field, amount) -- "-0" is no integer to Redis
  if amount ~= '0' then redis.call('HINCRBY', KEYS[1], field, '-' .. amount) end
end

-- A node that died never settles; its reservations end by themselves.
local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1000)
for _, member in ipairs(over) do
  local tokens, money = string.match(member, '|(%d+)|(%d+)$')
  take('rt', tokens)
  take('rm', money)
  redis.call('ZREM', KEYS[2], member)
end

local function get(field) return redis.call('HGET', KEYS[1], field) or '0' end
local tokens, money, rt, rm = get('tokens'), get('money'), get('rt'), get('rm')
local answer = {1, '', tokens, money, rt, rm}
if tonumber(ARGV[5]) > 0 and tonumber(tokens) + tonumber(rt) >= tonumber(ARGV[5]) then
  answer[1], answer[2] = 0, 'tokens'
elseif tonumber(ARGV[6]) > 0 and tonumber(money) + tonumber(rm) >= tonumber(ARGV[6]) then
  answer[1], answer[2] = 0, 'money'
elseif redis.call('ZADD', KEYS[2], 'NX', now + tonumber(ARGV[4]), ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'rt', ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'rm', ARGV[3])
  redis.call('EXPIREAT', KEYS[1], ARGV[7])
  redis.call('EXPIREAT', KEYS[2], ARGV[7])
end
return answer
