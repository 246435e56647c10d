-- turn: the best of the heads, for who takes them. Put after heads.

-- park takes a conversation at its cap out of the ready set, where it has a score.
local function park(K, class, conv, score)
  local g = class .. ' ' .. conv
  local since, mark0, crowd, leads = headOf(K, g)
  mark(K, 'ready', class .. ' ' .. score .. ' ' .. conv, false)
  if leads and mark0 == score then
    setLine(K, g, since .. ' parked ' .. crowd .. ' ' .. leads)
    call('ZADD', K.parked, 0, conv .. ' ' .. class)
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

-- nextDue is when the next deferred task is due (ms), nil for none.
local function nextDue(K) return tonumber(call('ZRANGE', K.deferred, 0, 0, 'WITHSCORES')[2] or '') end

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
