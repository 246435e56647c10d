-- pending: a page of what is delivered and unsettled, for an owner that starts
-- or that does not know what a lost answer held.
--
-- KEYS[1] lease hash, KEYS[2] commit number, KEYS[3] stream
-- ARGV: token, seq, group, id to start after ("0": from the first), count
-- Returns {"stale"}, {"late"} or {"ok", commit number, now ms, {{id, fields or false} …}}
local lease = redis.call('HMGET', KEYS[1], 'token', 'seq')
if lease[1] ~= ARGV[1] then return {'stale'} end
if lease[2] and tonumber(lease[2]) >= tonumber(ARGV[2]) then return {'late'} end
redis.call('HSET', KEYS[1], 'seq', ARGV[2])
local commits = redis.call('INCR', KEYS[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local got = redis.call('XREADGROUP', 'GROUP', ARGV[3], 'owner', 'COUNT', ARGV[5], 'STREAMS', KEYS[3], ARGV[4])
return {'ok', commits, string.format('%.0f', now), got and got[1] and got[1][2] or {}}
