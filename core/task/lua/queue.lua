-- queue: the order of what is pending. Put after rows.
--
-- Within a conversation the order is exact: the time of enqueueing less step for
-- each degree of priority, the least first. Of each conversation, and each class
-- of worker (profile and storage), one head stands in the ready set. Its score is
-- the time since when the conversation has been waiting for a turn, less step for
-- each degree of the head's priority. A turn taken begins the waiting anew, so a
-- conversation with many tasks goes to the end of the line after each of them.

-- rehead puts the head of a class and conversation into the ready set, or takes
-- out the last one. A turn taken now is told by served; otherwise a head keeps
-- its waiting, or begins it at since if that is earlier, as it is of a task that
-- is given back.
local function rehead(K, class, conv, since, served)
  local g = class .. ' ' .. conv
  local was = call('HGET', K.heads, g)
  local had, mark
  if was then had, mark = string.match(was, '^(%d+) (%S+)$') end
  local head = first(K.queue, g)
  if mark == 'parked' then
    if not head then
      call('HDEL', K.heads, g)
      call('ZREM', K.parked, conv .. ' ' .. class)
    end
    return
  end
  if mark then call('ZREM', K.ready, class .. ' ' .. mark .. ' ' .. conv) end
  if not head then
    call('HDEL', K.heads, g)
    return
  end
  since = tonumber(since)
  if served then since = served elseif had and tonumber(had) < since then since = tonumber(had) end
  local score = pad(since - num(string.match(head, ' (%d+) %d+ %S+$')) * step)
  call('ZADD', K.ready, 0, class .. ' ' .. score .. ' ' .. conv)
  call('HSET', K.heads, g, ms(since) .. ' ' .. score)
end

-- enqueue makes a task pending. One that was pending before keeps its age.
local function enqueue(K, id, st, since)
  move(K, id, st, 'pending')
  if not st.enqueued then
    st.enqueued, st.seq = ms(since), pad(call('HINCRBY', K.order, 'seq', 1))
  end
  local score = pad(num(st.enqueued) - num(st.priority) * step)
  st.spot = table.concat({st.class, st.conv, score, st.priority, st.seq, id}, ' ')
  call('ZADD', K.queue, 0, st.spot)
  rehead(K, st.class, st.conv, st.enqueued)
  signal(K, 'wake ' .. K.p)
end

-- unqueue takes a pending task out; served is now when it begins to run.
local function unqueue(K, st, now, served)
  call('ZREM', K.queue, st.spot or '')
  st.spot = nil
  rehead(K, st.class, st.conv, now, served)
end

-- park takes a conversation at its cap out of the ready set; unpark puts it back
-- to the end of the line.
local function park(K, class, conv)
  local g = class .. ' ' .. conv
  local since, mark = string.match(call('HGET', K.heads, g) or '', '^(%d+) (%S+)$')
  call('ZREM', K.ready, class .. ' ' .. (mark or '') .. ' ' .. conv)
  call('HSET', K.heads, g, (since or '0') .. ' parked')
  call('ZADD', K.parked, 0, conv .. ' ' .. class)
end

local function unpark(K, conv, now)
  local from, to = under(conv)
  for _, m in ipairs(call('ZRANGEBYLEX', K.parked, from, to)) do
    local class = string.match(m, ' (%S+)$')
    call('ZREM', K.parked, m)
    call('HDEL', K.heads, class .. ' ' .. conv)
    rehead(K, class, conv, now)
    signal(K, 'wake ' .. K.p)
  end
end

-- best finds whose turn it is among classes; conversations with cap tasks running
-- are parked on the way (0: no cap).
local function best(K, classes, cap)
  while true do
    local class, score, conv
    for _, c in ipairs(classes) do
      local m = first(K.ready, c)
      if m then
        local s, v = string.match(m, ' (%d+) (%S+)$')
        if not score or s < score then class, score, conv = c, s, v end
      end
    end
    if not class then return nil end
    if cap == 0 or num(call('HGET', K.load, conv)) < cap then return class, score, conv end
    park(K, class, conv)
  end
end

-- pour makes pending what was deferred until now, at most some hundred at a time,
-- and says how many those were.
local function pour(K, now)
  local ids = call('ZRANGEBYSCORE', K.deferred, '-inf', ms(now), 'LIMIT', 0, 300)
  for _, id in ipairs(ids) do
    call('ZREM', K.deferred, id)
    local st = fetch(K, id)
    if st and may(st.status, 'pending') and st.status == 'deferred' then
      enqueue(K, id, st, st.due)
      store(K, id, st)
    end
  end
  return #ids
end

-- outlook tells a caller what there is to come back for: the score of the best
-- head, and when the next deferred task is due; each "" for nothing.
local function outlook(K, classes, cap)
  local _, score = best(K, classes, cap)
  local later = call('ZRANGE', K.deferred, 0, 0, 'WITHSCORES')
  return score or '', later[2] and ms(tonumber(later[2])) or ''
end
