-- queue: tasks become pending, and no longer are. Put after states and heads.

-- placeOf is the end of a task's member of the queue. All its words have one length,
-- so that texts compare alike everywhere.
local function placeOf(st, id)
  return format('%016d %02d %s %s', num(st.enqueued) - num(st.priority) * step, num(st.priority), st.seq or '', id)
end

-- nextSeq counts what is enqueued.
local function nextSeq(K)
  local n = num(lineOf(K, 'seq')) + 1
  setLine(K, 'seq', ms(n))
  return pad(n)
end

-- enqueue makes a task pending. One that was pending before keeps its age, by which its
-- conversation waits for a turn, unless that is told to wait since another time.
local function enqueue(K, id, st, since, turn)
  move(K, id, st, 'pending')
  if not st.enqueued then st.enqueued, st.seq = ms(since), nextSeq(K) end
  if not st.away and st.audience ~= 'supervisor' then lack(K, id, st.class, true) end
  local g, place, at = st.class .. ' ' .. st.conv, placeOf(st, id), num(turn or st.enqueued)
  local had, mark0, crowd, leads = headOf(K, g)
  if not leads then
    wake(K, st.class, lead(K, st.class, st.conv, at, place, '0', nil))
    return
  end
  local front = place < leads
  mark(K, 'queue', g .. ' ' .. (front and leads or place), true)
  if front then leads = place end
  if mark0 == 'parked' then
    setLine(K, g, had .. ' parked 1 ' .. leads)
  elseif front or at < tonumber(had) then
    wake(K, st.class, lead(K, st.class, st.conv, math.min(tonumber(had), at), leads, '1', mark0))
  elseif crowd == '0' then
    setLine(K, g, had .. ' ' .. mark0 .. ' 1 ' .. leads)
  end
end

-- unqueue takes a pending task out. A head that follows goes on waiting in its place.
local function unqueue(K, id, st)
  local g, place = st.class .. ' ' .. st.conv, placeOf(st, id)
  lack(K, id, st.class, false)
  local since, mark0, crowd, leads = headOf(K, g)
  if leads == place then
    follow(K, st.class, st.conv, tonumber(since), mark0, crowd)
  else
    mark(K, 'queue', g .. ' ' .. place, false)
  end
end

-- unpark puts a conversation that was at its cap back, to the end of the line.
local function unpark(K, conv, now)
  for _, m in ipairs(under(K, 'parked', conv, 1000)) do
    local class = last(m)
    call('ZREM', K.parked, m)
    local _, mark0, crowd, leads = headOf(K, class .. ' ' .. conv)
    if mark0 == 'parked' then wake(K, class, lead(K, class, conv, now, leads, crowd, nil)) end
  end
end

-- defer makes a task wait until it is due, and tells the pools when none is due
-- before it.
local function defer(K, id, st)
  move(K, id, st, 'deferred')
  call('ZADD', K.deferred, st.due, id)
  if call('ZRANGE', K.deferred, 0, 0)[1] == id then signal(K, 'wake ' .. K.p) end
end
