-- pour: what is due. Put after queue.

-- pour makes pending what was deferred until now, at most some hundred at a time, and
-- says how many those were.
local function pour(K, now)
  local ids = call('ZRANGEBYSCORE', K.deferred, '-inf', ms(now), 'LIMIT', 0, 300)
  if #ids == 0 then return 0 end
  call('ZREM', K.deferred, unpack(ids))
  fetchAll(K, ids)
  for _, id in ipairs(ids) do
    local st = fetch(K, id)
    if st and may(st.status, 'pending') and st.status == 'deferred' then
      enqueue(K, id, st, st.due)
      store(K, id, st)
    end
  end
  return #ids
end
