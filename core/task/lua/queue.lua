-- queue: the order of what is pending. Put after rows.
--
-- Within a conversation the order is exact: the time of enqueueing less step for
-- each degree of priority, the least first. Of each conversation, and each class
-- of worker (profile and storage), one head stands in the ready set. Its score is
-- the time since when the conversation has been waiting for a turn, less step for
-- each degree of the head's priority. A turn taken begins the waiting anew, so a
-- conversation with many tasks goes to the end of the line after each of them.

-- last is the last word of a text. (A pattern that may begin anywhere is tried from
-- everywhere.)
local function last(s) return string.match(s, '^.* (%S+)$') end

-- lineOf is what heads says of a class and conversation, false for nothing;
-- setLine changes it.
local function lineOf(K, g)
  local l = K.lines[g]
  if l == nil then
    l = call('HGET', K.heads, g)
    K.lines[g] = l
  end
  return l
end

local function setLine(K, g, line) K.lines[g], K.moved[g] = line, true end

-- lead makes a member of the queue, of which tail is the end, the head of its class
-- and conversation, which has been waiting since a time.
local function lead(K, class, conv, since, tail, mark0)
  local score = pad(since - num(string.match(tail, '^%d+ (%d+)')) * step)
  if mark0 ~= score then
    if mark0 then mark(K, 'ready', class .. ' ' .. mark0 .. ' ' .. conv, false) end
    mark(K, 'ready', class .. ' ' .. score .. ' ' .. conv, true)
  end
  setLine(K, class .. ' ' .. conv, ms(since) .. ' ' .. score .. ' ' .. tail)
  return score
end

-- wake tells the pools of a head.
local function wake(K, class, score)
  K.woke[#K.woke + 1] = class
  K.woke[#K.woke + 1] = score
end

-- rehead finds the head of a class and conversation, and puts it into the ready set
-- or takes out the last one. A turn taken now is told by served; otherwise a head
-- keeps its waiting, or begins it at since if that is earlier. It gives the score.
local function rehead(K, class, conv, since, served)
  local g = class .. ' ' .. conv
  local had, mark0 = string.match(lineOf(K, g) or '', '^(%d+) (%S+)')
  local head = first(K, 'queue', g)
  if mark0 == 'parked' then
    if not head then
      setLine(K, g, false)
      call('ZREM', K.parked, conv .. ' ' .. class)
    end
    return nil
  end
  if not head then
    if mark0 then mark(K, 'ready', class .. ' ' .. mark0 .. ' ' .. conv, false) end
    setLine(K, g, false)
    return nil
  end
  since = tonumber(since)
  if served then since = served elseif had and tonumber(had) < since then since = tonumber(had) end
  return lead(K, class, conv, since, string.sub(head, #g + 2), mark0)
end

-- place is the end of a task's member of the queue. All its words have one length,
-- so that texts compare alike everywhere.
local function place(st, id)
  return format('%016d %02d %s %s', num(st.enqueued) - num(st.priority) * step, num(st.priority), st.seq or '', id)
end

-- storageOf is the storage that a class needs, "" for none.
local function storageOf(class) return string.match(class, '@(.*)$') or '' end

-- lack notes that people are to be told when the storage of a pending task is gone
-- for long.
local function lack(K, id, st, waits)
  local s = storageOf(st.class)
  if s ~= '' and (not waits or not st.away and st.audience ~= 'supervisor') then mark(K, 'index', 'n ' .. s .. ' ' .. id, waits) end
end

-- enqueue makes a task pending. One that was pending before keeps its age.
local function enqueue(K, id, st, since)
  move(K, id, st, 'pending')
  if not st.enqueued then
    st.enqueued, st.seq = ms(since), pad(call('HINCRBY', K.order, 'seq', 1))
  end
  local g, tail, at = st.class .. ' ' .. st.conv, place(st, id), num(st.enqueued)
  mark(K, 'queue', g .. ' ' .. tail, true)
  lack(K, id, st, true)
  local had, mark0, leads = string.match(lineOf(K, g) or '', '^(%d+) (%S+) (.+)$')
  if mark0 == 'parked' then return end
  had = tonumber(had or at)
  if not leads or tail < leads or at < had then
    if leads and leads < tail then tail = leads end
    wake(K, st.class, lead(K, st.class, st.conv, math.min(had, at), tail, mark0))
  end
end

-- unqueue takes a pending task out; served is now when it begins to run. It gives
-- the score of the next head.
local function unqueue(K, id, st, now, served)
  mark(K, 'queue', st.class .. ' ' .. st.conv .. ' ' .. place(st, id), false)
  lack(K, id, st, false)
  return rehead(K, st.class, st.conv, now, served)
end

-- park takes a conversation at its cap out of the ready set; unpark puts it back
-- to the end of the line.
local function park(K, class, conv)
  local g = class .. ' ' .. conv
  local since, mark0, tail = string.match(lineOf(K, g) or '', '^(%d+) (%S+) (.+)$')
  if mark0 then mark(K, 'ready', class .. ' ' .. mark0 .. ' ' .. conv, false) end
  setLine(K, g, (since or '0') .. ' parked ' .. (tail or ''))
  call('ZADD', K.parked, 0, conv .. ' ' .. class)
end

local function unpark(K, conv, now)
  for _, m in ipairs(under(K, 'parked', conv, 1000)) do
    local class = last(m)
    call('ZREM', K.parked, m)
    setLine(K, class .. ' ' .. conv, false)
    local score = rehead(K, class, conv, now)
    if score then wake(K, class, score) end
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
    if laden(K, convOf(h), cap) then park(K, h[2], convOf(h)) else scores[#scores + 1] = h[1] end
  end
  if more then scores[#scores + 1] = 'more' end
  return scores
end
