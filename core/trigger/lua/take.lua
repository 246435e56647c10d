-- take: claim triggers that are due, so that nobody else looks at them for a while.
-- Put after rows.
--
-- KEYS[1] commit number, KEYS[2..] those of rows
-- ARGV: signal channel, number of the partition, how many at most, then pairs of a
--   class and how long its triggers are claimed (ms)
-- Returns {commit number or 0 when nothing was written, now ms, when the next is due
--   (ms) or "", id, row, state …}. A claim says only when the trigger is looked at
--   next: who claimed may be late or gone, and the next one decides anew.
local K, most, out = bind(KEYS, 2, ARGV[1], ARGV[2]), tonumber(ARGV[3]), {0, '', ''}
local now = clock()
out[2] = ms(now)
for i = 4, #ARGV, 2 do
  local class, room = ARGV[i], most - (#out - 3) / 3
  if room > 0 then
    local due = call('ZRANGEBYLEX', K.due, '[' .. class .. ' ', '(' .. class .. ' ' .. pad(now + 1), 'LIMIT', 0, room)
    for _, m in ipairs(due) do
      if out[1] == 0 then out[1] = call('INCR', KEYS[1]) end
      local id = last(m)
      local st, r = fetch(K, id), call('HGET', K.rows, id)
      if st and r and st.class .. ' ' .. (st.due or '') .. ' ' .. id == m then
        schedule(K, id, st, now + ARGV[i + 1])
        local s = cjson.encode(st)
        call('HSET', K.state, id, s)
        out[#out + 1], out[#out + 2], out[#out + 3] = id, r, s
      else
        call('ZREM', K.due, m) -- of nobody
      end
    end
  end
end
for i = 4, #ARGV, 2 do
  local m = call('ZRANGEBYLEX', K.due, '[' .. ARGV[i] .. ' ', '(' .. ARGV[i] .. '!', 'LIMIT', 0, 1)[1]
  local at = m and tonumber(string.match(m, ' (%d+) %S+$'))
  if at and (out[3] == '' or at < tonumber(out[3])) then out[3] = ms(at) end
end
return out
