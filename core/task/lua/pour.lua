-- pour: what is due. Put after queue.

-- pour makes pending what was deferred until now, at most some hundred at a time, and
-- says how many those were. Each goes on waiting as old as it is in its conversation,
-- which waits for a turn since it was due: it had its turn when it was put off. What is
-- damaged is left out, for an error here would lose the others.
local function pour(K, now)
  local ids = call('ZRANGEBYSCORE', K.deferred, '-inf', ms(now), 'LIMIT', 0, 300)
  if #ids == 0 then return 0 end
  call('ZREM', K.deferred, unpack(ids))
  fetchAll(K, ids)
  for _, id in ipairs(ids) do
    local st = fetch(K, id)
    if st and st.status == 'deferred' and may(st.status, 'pending') and type(st.class) == 'string' and type(st.conv) == 'string' then
      enqueue(K, id, st, st.due, st.due)
      store(K, id, st)
    end
  end
  return #ids
end
