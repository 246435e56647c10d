-- fold: put the oldest lines of a history into its summary, or change nothing.
--
-- KEYS[1] history list, KEYS[2] summary hash
-- ARGV: version of the summary that the caller has read ("" for none),
--       number of lines to fold, SHA-1 of them (each as its length, ":" and itself),
--       number of lines that the caller has seen, most lines to give back,
--       fields and values of the new summary
-- Returns {"ok", lines that are left}
--         {"changed"} when the summary or these lines are not what the caller has read
--         {"grown", lines} when there are more than the caller has seen: what it has
--         not, as many as it may be given
if (redis.call('HGET', KEYS[2], 'version') or '') ~= ARGV[1] then return {'changed'} end
local n, seen, total = tonumber(ARGV[2]), tonumber(ARGV[4]), redis.call('LLEN', KEYS[1])
if total < seen then return {'changed'} end
local lines = redis.call('LRANGE', KEYS[1], 0, n - 1)
for i, l in ipairs(lines) do lines[i] = #l .. ':' .. l end
if redis.sha1hex(table.concat(lines)) ~= ARGV[3] then return {'changed'} end
if total > seen then return {'grown', redis.call('LRANGE', KEYS[1], seen, seen + ARGV[5] - 1)} end
redis.call('HSET', KEYS[2], unpack(ARGV, 6))
redis.call('PERSIST', KEYS[2]) -- whoever removed the rest of an idle conversation gave it an end
redis.call('LTRIM', KEYS[1], n, -1)
return {'ok', total - n}
