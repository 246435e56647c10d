-- limited: a budget is closed for a while, never shorter than it is already. KEYS[1] marker. ARGV: ms
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) end
return 1
