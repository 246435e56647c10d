-- call: ops of extension.lua, which stands before it as extension, by themselves.
--
-- KEYS[1] commit number, the rest as extension's keys, with the own keys of all ops
-- ARGV: "1" when the types of the keys are to be looked at first; then for each op
--   the number of its own key among extension's keys (0: none), m, m args
-- Returns {commit number, {what it did, id, …}, …}
local keys, list, at = {unpack(KEYS, 2)}, {}, 2
while ARGV[at] do
  local m = tonumber(ARGV[at + 1])
  list[#list + 1] = {tonumber(ARGV[at]), {unpack(ARGV, at + 2, at + 1 + m)}}
  at = at + 2 + m
end
if ARGV[1] == '1' then extension.check(keys) end
return {redis.call('INCR', KEYS[1]), unpack(extension.all(keys, list, clock()))}
