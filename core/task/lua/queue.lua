-- queue: the order of what is pending. Put after rows.
--
-- Within a conversation the order is exact: the time of enqueueing less step for
-- each degree of priority, the least first. Of each conversation, and each class
-- of worker (profile and storage), one head stands in the ready set. Its score is
-- the time since when the conversation has been waiting for a turn, less step for
-- each degree of the head's priority. A turn taken begins the waiting anew, so a
-- conversation with many tasks goes to the end of the line after each of them.
--
-- A head is told by a line of order alone: "since score crowd score priority seq
-- id", with "parked" in place of the first score when it is not in the ready set;
-- what waits behind it stands in queue. Most conversations have one task at a time,
-- and crowd spares those the search: it is 1 when there may be somebody behind, and
-- 0 when none was, or when a search has found none.

-- last is the last word of a text. (A pattern that may begin anywhere is tried from
-- everywhere.)
local function last(s) return string.match(s, '^.* (%S+)$') end

-- headOf gives since, score or parked, crowd and place of a head, nil for none.
local function headOf(K, g) return string.match(lineOf(K, g) or '', '^(%d+) (%S+) (%d) (.+)$') end

-- lead makes a task, of which this is the place, the head of its class and
-- conversation, which has been waiting since a time. It gives the score.
local function lead(K, class, conv, since, place, crowd, mark0)
  local score = pad(since - num(string.match(place, '^%d+ (%d+)')) * step)
  if mark0 ~= score then
    if mark0 then mark(K, 'ready', class .. ' ' .. mark0 .. ' ' .. conv, false) end
    mark(K, 'ready', class .. ' ' .. score .. ' ' .. conv, true)
  end
  setLine(K, class .. ' ' .. conv, ms(since) .. ' ' .. score .. ' ' .. crowd .. ' ' .. place)
  return score
end

-- wake tells the pools of a head.
local function wake(K, class, score)
  K.woke[#K.woke + 1] = class
  K.woke[#K.woke + 1] = score
end

-- follow puts the next one in the place of a head that goes, waiting since a time, and
-- gives its score; nil when there is none, or none that stands in the ready set.
local function follow(K, class, conv, since, mark0, crowd)
  local g = class .. ' ' .. conv
  local behind = crowd == '0' and {} or under(K, 'queue', g, 2)
  if not behind[1] then
    if mark0 == 'parked' then
      call('ZREM', K.parked, conv .. ' ' .. class)
    elseif mark0 then
      mark(K, 'ready', class .. ' ' .. mark0 .. ' ' .. conv, false)
    end
    setLine(K, g, false)
    return nil
  end
  mark(K, 'queue', behind[1], false)
  local place = string.sub(behind[1], #g + 2)
  crowd = behind[2] and '1' or '0'
  if mark0 == 'parked' then
    setLine(K, g, ms(since) .. ' parked ' .. crowd .. ' ' .. place)
    return nil
  end
  return lead(K, class, conv, since, place, crowd, mark0)
end

-- placeOf is the end of a task's member of the queue. All its words have one length,
-- so that texts compare alike everywhere.
local function placeOf(st, id)
  return format('%016d %02d %s %s', num(st.enqueued) - num(st.priority) * step, num(st.priority), st.seq or '', id)
end

-- storageOf is the storage that a class needs, "" for none.
local function storageOf(class) return string.sub(class, (string.find(class, '@', 1, true) or #class) + 1) end

-- lack notes that people are to be told when the storage of a pending task is gone
-- for long.
local function lack(K, id, class, waits)
  local s = storageOf(class)
  if s ~= '' then mark(K, 'index', 'n ' .. s .. ' ' .. id, waits) end
end

-- nextSeq counts what is enqueued.
local function nextSeq(K)
  local n = num(lineOf(K, 'seq')) + 1
  setLine(K, 'seq', ms(n))
  return pad(n)
end

-- enqueue makes a task pending. One that was pending before keeps its age.
local function enqueue(K, id, st, since)
  move(K, id, st, 'pending')
  if not st.enqueued then st.enqueued, st.seq = ms(since), nextSeq(K) end
  if not st.away and st.audience ~= 'supervisor' then lack(K, id, st.class, true) end
  local g, place, at = st.class .. ' ' .. st.conv, placeOf(st, id), num(st.enqueued)
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

-- park takes a conversation at its cap out of the ready set, where it has a score;
-- unpark puts it back to the end of the line.
local function park(K, class, conv, score)
  local g = class .. ' ' .. conv
  local since, mark0, crowd, leads = headOf(K, g)
  mark(K, 'ready', class .. ' ' .. score .. ' ' .. conv, false)
  if leads and mark0 == score then
    setLine(K, g, since .. ' parked ' .. crowd .. ' ' .. leads)
    call('ZADD', K.parked, 0, conv .. ' ' .. class)
  end
end

local function unpark(K, conv, now)
  for _, m in ipairs(under(K, 'parked', conv, 1000)) do
    local class = last(m)
    call('ZREM', K.parked, m)
    local _, mark0, crowd, leads = headOf(K, class .. ' ' .. conv)
    if mark0 == 'parked' then wake(K, class, lead(K, class, conv, now, leads, crowd, nil)) end
  end
end

-- ahead gives up to n of the best heads of classes, the best first, as {score,
-- class, member of ready}, and whether there are more.
local function ahead(K, classes, n)
  local list, more = {}, false
  for _, class in ipairs(classes) do
    local got = under(K, 'ready', class, n)
    more = more or #got == n
    for _, m in ipairs(got) do list[#list + 1] = {string.sub(m, #class + 2, #class + 17), class, m} end
  end
  if #classes > 1 then table.sort(list, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[3] < b[3] end) end
  while #list > n do table.remove(list) end
  return list, more
end

-- convOf is the conversation of a head.
local function convOf(h) return string.sub(h[3], #h[2] + 19) end

-- laden reports whether a conversation is at its cap (0: none).
local function laden(K, conv, cap) return cap > 0 and num(call('HGET', K.load, conv)) >= cap end

-- pour makes pending what was deferred until now, at most some hundred at a time.
-- It says how many those were, and when the next is due ("" for none).
local function pour(K, now)
  local n, due, score = 0, unpack(call('ZRANGE', K.deferred, 0, 0, 'WITHSCORES'))
  if due and tonumber(score) <= now then
    local ids = call('ZRANGEBYSCORE', K.deferred, '-inf', ms(now), 'LIMIT', 0, 300)
    call('ZREM', K.deferred, unpack(ids))
    fetchAll(K, ids)
    for _, id in ipairs(ids) do
      local st = fetch(K, id)
      if st and may(st.status, 'pending') and st.status == 'deferred' then
        enqueue(K, id, st, st.due)
        store(K, id, st)
      end
    end
    n = #ids
    due, score = unpack(call('ZRANGE', K.deferred, 0, 0, 'WITHSCORES'))
  end
  return n, due and ms(score) or ''
end

-- defer makes a task wait until it is due, and tells the pools when none is due
-- before it.
local function defer(K, id, st)
  move(K, id, st, 'deferred')
  call('ZADD', K.deferred, st.due, id)
  if call('ZRANGE', K.deferred, 0, 0)[1] == id then signal(K, 'wake ' .. K.p) end
end

-- outlook tells a caller what there is to come back for: the scores of the best
-- heads, of which ahead gave the list and whether there are more; "more" at the end
-- when there are.
local function outlook(K, list, more, cap)
  local scores = {}
  for _, h in ipairs(list) do
    if laden(K, convOf(h), cap) then park(K, h[2], convOf(h), h[1]) else scores[#scores + 1] = h[1] end
  end
  if more then scores[#scores + 1] = 'more' end
  return scores
end
