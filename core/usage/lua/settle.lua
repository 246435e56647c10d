-- Books what a call used, once, and ends its reservation.
--
-- KEYS  1 totals (hash)  2 reservations (zset)  3 settled (zset: call id, score = end in ms)
-- ARGV  1 call id  2 reservation's member, "" for none  3 its tokens  4 its money
--       5 how long a repeat is known, ms  6 end of totals, Unix seconds
--       7 tokens to warn at, 0 for never  8 money to warn at, 0 for never
--       9… field and amount, by turns
-- Gives {booked 1|0, unit to warn of ("tokens"|"money"|""), tokens, money}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function take(field, amount) -- "-0" is no integer to Redis
  if amount ~= '0' then redis.call('HINCRBY', KEYS[1], field, '-' .. amount) end
end

if ARGV[2] ~= '' and redis.call('ZREM', KEYS[2], ARGV[2]) == 1 then
  take('rt', ARGV[3])
  take('rm', ARGV[4])
end

local function get(field) return redis.call('HGET', KEYS[1], field) or '0' end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
if #ARGV < 9 then -- nothing to book: the call was not made
  return {1, '', get('tokens'), get('money')}
end
if redis.call('ZADD', KEYS[3], 'NX', now + tonumber(ARGV[5]), ARGV[1]) == 0 then
  return {0, '', get('tokens'), get('money')}
end
redis.call('PEXPIRE', KEYS[3], ARGV[5])
for i = 9, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('EXPIREAT', KEYS[1], ARGV[6])

local unit, tokens, money = '', get('tokens'), get('money')
if tonumber(ARGV[7]) > 0 and tonumber(tokens) >= tonumber(ARGV[7]) then
  unit = 'tokens'
elseif tonumber(ARGV[8]) > 0 and tonumber(money) >= tonumber(ARGV[8]) then
  unit = 'money'
end
if unit ~= '' and redis.call('HSETNX', KEYS[1], 'warned', unit) == 0 then
  unit = ''
end
return {1, unit, tokens, money}
