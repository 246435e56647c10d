-- frame: serve several partitions in one call, each by itself. Put after a script,
-- which stands before it as serve. To make a script ready costs as much as to serve
-- a partition, and on one server nothing keeps their keys apart.
--
-- KEYS: for each partition the keys of the script
-- ARGV: how many partitions, then for each: number of its keys, m, m args
-- Returns what the script returns, for each
local out, k, a = {}, 0, 1
for i = 1, tonumber(ARGV[1]) do
  local n, m = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  out[i] = serve({unpack(KEYS, k + 1, k + n)}, {unpack(ARGV, a + 3, a + 2 + m)})
  k, a = k + n, a + 2 + m
end
return out
