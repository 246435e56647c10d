-- remember: keep a note of a subject. keys: hash id -> "ms json". args: id, json, ms, most notes
return {
  check = function(keys, args) redis.call('HLEN', keys[1]) end,
  apply = function(keys, args, now)
    redis.call('HSET', keys[1], args[1], args[3] .. ' ' .. args[2])
    if redis.call('HLEN', keys[1]) <= tonumber(args[4]) then return end
    local oldest, at
    local all = redis.call('HGETALL', keys[1])
    for i = 1, #all, 2 do
      local ms = tonumber(string.match(all[i + 1], '^%d+') or '0')
      if not at or ms < at then oldest, at = all[i], ms end
    end
    redis.call('HDEL', keys[1], oldest)
  end,
}
