-- call: one op of extension.lua by itself.
--
-- KEYS[1] commit number, the rest as extension's keys
-- ARGV: extension's args
-- Returns {commit number, what it did, id}
local keys = {unpack(KEYS, 2)}
extensions.question.check(keys, ARGV)
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return {redis.call('INCR', KEYS[1]), unpack(extensions.question.apply(keys, ARGV, now))}
