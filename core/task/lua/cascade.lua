-- cascade: go on with cancels that concern more than their task. Put after cancel.
--
-- KEYS[1] commit number, KEYS[2..] those of rows
-- ARGV: signal channel, number of the partition, how many children to cancel at
--   most, ids whose triggers are canceled …
-- Returns {commit number, "1" when there are more children to cancel,
--   {ids whose triggers are to be canceled, at most 50}}
local commits = call('INCR', KEYS[1])
local K = bind(KEYS, 2, ARGV[1], ARGV[2])
for i = 4, #ARGV do
  if call('ZSCORE', K.cascade, ARGV[i]) == '1' then call('ZREM', K.cascade, ARGV[i]) end
end
cascade(K, tonumber(ARGV[3]), clock())
flush(K)
local more = #call('ZRANGEBYSCORE', K.cascade, 0, 0, 'LIMIT', 0, 1)
return {commits, ms(more), call('ZRANGEBYSCORE', K.cascade, 1, 1, 'LIMIT', 0, 50)}
