-- call: one op of extension.lua, which stands before it as extension, by itself.
--
-- KEYS[1] commit number, the rest as extension's keys
-- ARGV: extension's args
-- Returns {commit number, what it did, id, …}
local keys = {unpack(KEYS, 2)}
extension.check(keys, ARGV)
return {redis.call('INCR', KEYS[1]), unpack(extension.apply(keys, ARGV, clock()))}
