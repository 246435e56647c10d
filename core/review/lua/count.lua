-- Adds a batch of counts to a day's tally, once.
--
-- KEYS  1 tally (hash)
-- ARGV  1 field that names the counter  2 number of the batch  3 end of the tally, Unix seconds
--       4… field and amount, by turns
-- Gives 1 when it was added, 0 when it had been before.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
for i = 4, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('EXPIREAT', KEYS[1], ARGV[3])
return 1
