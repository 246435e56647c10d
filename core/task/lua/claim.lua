-- claim: begin to run the tasks whose turn it is. Put after turn and pour.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then claims hash
-- ARGV: signal channel, number of the partition, claimer, seq, node, cap of a
--   conversation (0: none), most tasks to take, worst score to take ("": any), how
--   many heads to look ahead, then for each class: class, most tasks of its profile
-- Returns {commit number, now ms, {scores of the next heads …, "more"}, when the next
--   deferred task is due or "", token, id, row, state, run …}, and {commit number, "late"}
--   when the claimer has claimed anew since. A repeat is answered with the runs that
--   it was given and that have not ended.
--
-- claims: claimer → "seq ms id …", so that a claim that Redis sees twice, or only
-- after its claimer has gone on, begins no run that nobody knows of.
local commits = call('INCR', KEYS[1])
local K, claims = bind(KEYS, 2, ARGV[1], ARGV[2]), KEYS[#KEYS]
local claimer, seq, node, cap = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local most, worst, further = tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])
local now = clock()
local latest, _, before = string.match(call('HGET', claims, claimer) or '', '^(%d+) (%d+) ?(.*)$')
if latest and tonumber(latest) > tonumber(seq) then return {commits, 'late'} end

local room = {}
for i = 10, #ARGV, 2 do room[string.match(ARGV[i], '^[^@]*')] = tonumber(ARGV[i + 1]) end
local function roomy(class) return (room[string.match(class, '^[^@]*')] or 0) > 0 end
local function open()
  local list = {}
  for i = 10, #ARGV, 2 do
    if roomy(ARGV[i]) then list[#list + 1] = ARGV[i] end
  end
  return list
end

local due = nextDue(K)
if due and due <= now then
  pour(K, now)
  flush(K) -- begin looks into the states as they are stored
  due = nextDue(K)
end
local list, more = ahead(K, open(), (latest == seq and 0 or most) + further)
local at, took, runs, lives, states = 1, {}, {}, {}, {}

-- begin runs the head that stands at a place of the list, and puts the next one of
-- its conversation in where it belongs.
local function begin(score, class, conv)
  local since, mark0, crowd, leads = headOf(K, class .. ' ' .. conv)
  local word, id = string.match(mark0 == score and leads or '', '^%d+ %d+ (%d+) (%S+)$')
  local st = id and (states[id] or call('HGET', K.state, id))
  local nextScore
  -- In JSON a quote inside of a text is never without a backslash before it.
  if st and string.find(st, '"status":"pending"', 1, true) and string.find(st, '"seq":"' .. word .. '"', 1, true) then
    lack(K, id, class, false)
    nextScore = follow(K, class, conv, now, mark0, crowd)
    if cap > 0 then call('HINCRBY', K.load, conv, 1) end
    took[#took + 1], states[id] = id, st
    local run = claimer .. '-' .. seq .. '-' .. #took .. ' 0 0 ' .. ms(now) .. (cap > 0 and ' 1 ' or ' 0 ') .. node
    runs[#runs + 1] = id
    runs[#runs + 1] = run
    lives[#took] = run
    local profile = string.match(class, '^[^@]*')
    room[profile] = room[profile] - 1
  else
    -- Nobody but another program leaves such places.
    mark(K, 'ready', class .. ' ' .. score .. ' ' .. conv, false)
    nextScore = mark0 ~= 'parked' and mark0 or nil
    if not leads or mark0 == score then nextScore = follow(K, class, conv, tonumber(since) or now, mark0, crowd) end
    if nextScore then mark(K, 'ready', class .. ' ' .. nextScore .. ' ' .. conv, true) end
  end
  if not nextScore or (more and nextScore > list[#list][1]) then return end
  local i = #list
  while i > at and list[i][1] > nextScore do i = i - 1 end
  table.insert(list, i + 1, {nextScore, class, class .. ' ' .. nextScore .. ' ' .. conv})
end

if latest == seq then
  for id in string.gmatch(before, '%S+') do took[#took + 1] = id end
else
  local groups, ids = {}, {}
  for i = 1, math.min(#list, most) do groups[i] = list[i][2] .. ' ' .. convOf(list[i]) end
  if #groups > 1 then
    linesAhead(K, groups)
    for _, g in ipairs(groups) do
      ids[#ids + 1] = K.lines[g] and last(K.lines[g]) or nil
    end
    if #ids > 1 then
      for i, s in ipairs(call('HMGET', K.state, unpack(ids))) do states[ids[i]] = s end
    end
  end
  while #took < most do
    local h = list[at]
    if not h and more then
      list, more = ahead(K, open(), most + further)
      at, h = 1, list[1]
    end
    if not h or (worst ~= '' and h[1] > worst) then break end
    local conv = convOf(h)
    if not roomy(h[2]) then
      table.remove(list, at)
    elseif laden(K, conv, cap) then
      park(K, h[2], conv, h[1])
      at = at + 1
    else
      begin(h[1], h[2], conv)
      at = at + 1
    end
  end
  if #runs > 0 then call('HSET', K.runs, unpack(runs)) end
  call('HSET', claims, claimer, seq .. ' ' .. ms(now) .. ' ' .. table.concat(took, ' '))
end
if more and at > #list then
  list, more = ahead(K, open(), further)
  at = 1
end
local left = {}
for i = at, #list do
  if roomy(list[i][2]) then left[#left + 1] = list[i] end
end
local scores = outlook(K, left, more, cap)
flush(K)
local out = {commits, ms(now), scores, due and ms(due) or ''}
if #took > 0 then
  local rows = call('HMGET', K.rows, unpack(took))
  if latest == seq then lives = call('HMGET', K.runs, unpack(took)) end
  for i, id in ipairs(took) do
    local token = claimer .. '-' .. seq .. '-' .. i
    if lives[i] and string.match(lives[i], '^%S+') == token then
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = token, id, rows[i] or '', states[id] or call('HGET', K.state, id) or '', lives[i]
    end
  end
end
return out
