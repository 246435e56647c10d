-- forget: remove tasks that ended long ago, except those that a trigger watches,
-- which are looked at again after as long. Put after states.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then 4 keys of each task's texts
-- ARGV: when the last of them ended at the latest (ms), number of keys before the
--   texts, ids …
-- Returns {commit number, how many were removed}
local commits = call('INCR', KEYS[1])
local K, at, gone = bind(KEYS, 2), tonumber(ARGV[2]), 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local st = fetch(K, id)
  local score = tonumber(call('ZSCORE', K.ended, id) or '')
  if score and score <= tonumber(ARGV[1]) and not call('ZSCORE', K.cascade, id) then
    if st and (st.watched or '') ~= '' then
      call('ZADD', K.ended, ms(clock()), id)
    else
      if st then
        call('ZREM', K.index, 'c ' .. st.conv .. ' ' .. id, 'r ' .. st.requester .. ' ' .. id,
          's ' .. word(st.status) .. ' ' .. id, 'p ' .. (st.parent or '') .. ' ' .. id)
      end
      call('HDEL', K.rows, id)
      call('HDEL', K.state, id)
      call('HDEL', K.runs, id)
      call('ZREM', K.ended, id)
      for j = 1, 4 do call('DEL', KEYS[at + 4 * (i - 3) + j]) end
      gone = gone + 1
    end
  end
end
return {commits, gone}
