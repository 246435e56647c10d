-- Gives the right to tell people that a budget nears its end, once.
--
-- KEYS  1 totals (hash)
-- ARGV  1 tokens to warn at, 0 for never  2 money to warn at, 0 for never
--       3 who wants to tell  4 end of totals, Unix seconds
-- Gives {1, unit to tell of ("tokens"|"money"|""), spent tokens, spent money, reserved tokens, reserved money}
--
-- Whoever has the right has it again when they ask again, so that a turn that is
-- repeated after a crash tells what the first one would have told.
local function get(field) return redis.call('HGET', KEYS[1], field) or '0' end
local tokens, money = get('tokens'), get('money')
local unit = ''
if tonumber(ARGV[1]) > 0 and tonumber(tokens) >= tonumber(ARGV[1]) then
  unit = 'tokens'
elseif tonumber(ARGV[2]) > 0 and tonumber(money) >= tonumber(ARGV[2]) then
  unit = 'money'
end
if unit ~= '' then
  if redis.call('HSETNX', KEYS[1], 'told', ARGV[3]) == 1 then
    redis.call('EXPIREAT', KEYS[1], ARGV[4])
  elseif redis.call('HGET', KEYS[1], 'told') ~= ARGV[3] then
    unit = ''
  end
end
return {1, unit, tokens, money, get('rt'), get('rm')}
