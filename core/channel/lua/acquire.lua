-- acquire: take a partition that nobody owns, or whose owner's time is over, or
-- that the caller itself owned under an older token.
--
-- KEYS[1] lease hash, KEYS[2] epoch, KEYS[3] commit number
-- ARGV: node, run id (unique to this try to own), ttl ms, the caller's old token or ""
-- Returns {1, token, commit number, now ms, suspect until ms, seq} or {0, node, until ms}
local lease = redis.call('HMGET', KEYS[1], 'token', 'node', 'until', 'suspect', 'seq')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local token, till = lease[1] or '', tonumber(lease[3] or '0')
local mine = token ~= '' and (token == ARGV[4] or string.sub(token, -#ARGV[2]) == ARGV[2])
if token ~= '' and till > now and not mine then return {0, lease[2], string.format('%.0f', till)} end
local epoch = redis.call('INCR', KEYS[2])
token = string.format('%.0f', epoch) .. '-' .. ARGV[2]
redis.call('HSET', KEYS[1], 'token', token, 'node', ARGV[1], 'until', string.format('%.0f', now + ARGV[3]), 'seq', '0')
return {1, token, redis.call('INCR', KEYS[3]), string.format('%.0f', now), lease[4] or '0'}
