-- Files findings of a review and marks the conversation as reviewed, unless
-- somebody else has marked it meanwhile.
--
-- KEYS  1 mark (string)  2 feedback (stream)
-- ARGV  1 the mark as it was read, "" for none  2 the new mark  3 its time to live in ms
--       4 number of fields of an entry  5… the fields of each entry, one after the other
-- Gives 1 when it was done, 0 when the mark was another.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
local n = tonumber(ARGV[4])
for i = 5, #ARGV, n do
  redis.call('XADD', KEYS[2], '*', unpack(ARGV, i, i + n - 1))
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
