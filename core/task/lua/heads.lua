-- heads: whose turn it is. Put after rows, and after a line that is made of the Go
-- table: step, the ms of waiting that one step of priority is worth.
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

-- storageOf is the storage that a class needs, "" for none.
local function storageOf(class) return string.sub(class, (string.find(class, '@', 1, true) or #class) + 1) end

-- lack notes that people are to be told when the storage of a pending task is gone
-- for long.
local function lack(K, id, class, waits)
  local s = storageOf(class)
  if s ~= '' then mark(K, 'index', 'n ' .. s .. ' ' .. id, waits) end
end
