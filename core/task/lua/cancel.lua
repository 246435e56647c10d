-- cancel: how tasks are canceled, with what they have started. Put after ends.

-- cancel ends a task that does not run, flags one that does, and marks it, so that
-- what it started is canceled too, which may be the only thing left to do of one
-- that is over. by is {JSON of who, why, commit id}. It says what it did, or what
-- it did for the same commit id before: canceled, flagged or ended; or again, when
-- somebody had done it already.
local function cancel(K, id, st, by, now)
  if st.cancelId and st.cancelId == by[3] then return st.cancelWas end
  local over = not may(st.status, 'canceled')
  if st.cancelAt then return over and 'ended' or 'again' end
  st.cancelAt, st.cancelBy, st.cancelReason, st.cancelId = ms(now), by[1], by[2], by[3]
  call('ZADD', K.cascade, 0, id)
  if over then
    st.cancelWas = 'ended'
  elseif st.status == 'running' then
    st.cancelWas = 'flagged'
    signal(K, 'cancel ' .. id)
  else
    st.cancelWas = 'canceled'
    if st.status == 'pending' then unqueue(K, id, st) end
    if st.status == 'deferred' then call('ZREM', K.deferred, id) end
    -- It ends by the cancel, not by the failure for which it waited to run again.
    st.error, st.reason = nil, nil
    finish(K, id, st, 'canceled', now)
  end
  store(K, id, st)
  return st.cancelWas
end

-- cascade cancels the children of what is marked, at most some, and leaves the
-- marks of what is not done.
local function cascade(K, most, now)
  while most > 0 do
    local id = call('ZRANGEBYSCORE', K.cascade, 0, 0, 'LIMIT', 0, 1)[1]
    if not id then return end
    local st = fetch(K, id)
    if not st then
      call('ZREM', K.cascade, id)
      most = most - 1
    else
      local from = '[p ' .. id .. ' '
      if st.cursor then from = '(p ' .. id .. ' ' .. st.cursor end
      settleMarks(K, 'index')
      local list = call('ZRANGEBYLEX', K.index, from, '(p ' .. id .. '!', 'LIMIT', 0, most)
      for _, m in ipairs(list) do
        local child = last(m)
        local c = fetch(K, child)
        if c then cancel(K, child, c, {st.cancelBy, st.cancelReason, st.cancelId .. '>'}, now) end
        st.cursor = child
      end
      if #list < most then
        call('ZADD', K.cascade, 1, id)
        st.cursor = nil
      end
      store(K, id, st)
      most = most - #list - 1
    end
  end
end
