-- draw: take one call out of a budget that refills evenly (the generic cell rate algorithm).
-- KEYS[1] the time (us) at which the budget is full again, KEYS[2] exists while the platform refuses
-- ARGV: us between two calls, calls at once, share to leave, longest wait in us
-- Returns the wait in us; what is over the longest wait is returned and not taken; -1 when the share would be touched
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local every, burst, reserve, patience = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local closed = redis.call('PTTL', KEYS[2])
local open = now
if closed > 0 then open = now + closed * 1000 end
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), open)
local left = burst - (full - open) / every
if reserve > 0 and left - 1 < burst * reserve then return -1 end
local wait = math.max(full + every - burst * every, open) - now
if wait > patience then return string.format('%.0f', wait) + 0 end
full = full + every
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', string.format('%.0f', math.ceil((full - now) / 1000) + 1000))
return string.format('%.0f', wait) + 0
