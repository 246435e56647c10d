-- rows: what every script of tasks knows: the keys of a partition, the state of a
-- task, and how what is changed is written. It is put before the scripts, after two
-- lines that are made of the Go tables: chart (status → the statuses that may
-- follow) and step (ms of waiting that one step of priority is worth).
--
-- The state of a task is a JSON object of strings: Lua's numbers lose digits on
-- their way through cjson, and what a later build adds comes through unharmed.
-- Where a set is told to be sorted by text, all scores are 0 and its members are
-- words with spaces between; no word has a space of its own.
--
-- What runs is told by runs alone, so that a claim need not touch the state: as
-- long as a task has a run, fetch puts it over what the state says.
--
-- A script changes many tasks in one call, so what it changes is gathered in K and
-- written by flush with one command a key. Whatever is read in between sees it.
local call = redis.call
local types = {
  'rows', 'h', -- id → what never changes: a line of JSON that no script looks into, and the lines of which entries about the task are made: the beginning of a result, that of a feedback, the fields of an entry
  'state', 'h', -- id → JSON of what scripts read and change
  'index', 'z', -- by text: "c conversation id", "r requester id", "s status id", "p parent id", "n storage id"
  'queue', 'z', -- by text: "class conversation score priority seq id" of what is pending behind a head
  'order', 'h', -- what a word or two say: "class conversation" → the head, see queue.lua; digest → id of the task that is not over; seq: how many tasks were enqueued, for those of one millisecond
  'ready', 'z', -- by text: "class score conversation": whose turn it is
  'parked', 'z', -- by text: "conversation class" of those at their cap
  'deferred', 'z', -- id, by when it is due (ms)
  'runs', 'h', -- id of what runs → "token seq beats ms capped node": its last note, how often it has shown that it lives, since when, "1" when it counts in load
  'load', 'h', -- conversation → how many of its tasks run, of those claimed under a cap
  'ended', 'z', -- id, by when it ended (ms), or by when it was last found to be watched
  'cascade', 'z', -- id of a canceled task: 0 while its children are to be canceled, then 1 for its triggers
  'results', 'x', 'events', 'x', 'feedback', 'x', -- streams of core/channel
  'stops', 'h', -- of core/channel: conversation → stop number
}

-- bind gives names to the keys that begin at keys[from], in the order of types, and
-- makes what flush writes; signal is the pub/sub channel and p the partition's
-- number.
local function bind(keys, from, signal, p)
  return {
    signal = signal, p = p,
    rows = keys[from], state = keys[from + 1], index = keys[from + 2], queue = keys[from + 3], order = keys[from + 4],
    ready = keys[from + 5], parked = keys[from + 6], deferred = keys[from + 7], runs = keys[from + 8], load = keys[from + 9],
    ended = keys[from + 10], cascade = keys[from + 11], results = keys[from + 12], events = keys[from + 13],
    feedback = keys[from + 14], stops = keys[from + 15],
    marks = {}, states = {}, changed = {}, fresh = {}, lines = {}, moved = {}, ends = {}, said = {}, woke = {},
  }
end

-- look runs into a key that holds another type, before anything is changed.
local function look(K)
  for i = 1, #types, 2 do
    call(({h = 'HLEN', z = 'ZCARD', x = 'XLEN'})[types[i + 1]], K[types[i]])
  end
end

local time
local function clock()
  time = time or call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- num reads a number, 0 for none, and ms spells one. Within a call the same are asked
-- for again and again.
local format, numbers, lastN, lastMs = string.format, {}, nil, nil
local function num(s)
  s = s or ''
  local n = numbers[s]
  if not n then
    n = tonumber(s) or 0
    numbers[s] = n
  end
  return n
end
local function ms(n)
  if n ~= lastN then
    lastN = n
    lastMs = format('%d', n)
  end
  return lastMs
end
local function pad(n) return format('%016d', n) end
local function may(from, to) return (chart[from] or {})[to] end

-- iso spells a time in ms as RFC 3339; most are of one minute.
local lastMinute, lastDate
local floor = math.floor
local function iso(t)
  t = num(t)
  local minute = floor(t / 60000)
  if minute ~= lastMinute then
    lastMinute = minute
    -- Years that begin in March have their leap day last, so one formula counts them.
    local day = floor(minute / 1440) + 719468
    local era = floor(day / 146097)
    local inEra = day - era * 146097
    local year = floor((inEra - floor(inEra / 1460) + floor(inEra / 36524) - floor(inEra / 146096)) / 365)
    local inYear = inEra - (365 * year + floor(year / 4) - floor(year / 100))
    local m = floor((5 * inYear + 2) / 153)
    local d = inYear - floor((153 * m + 2) / 5) + 1
    year = year + era * 400
    if m < 10 then m = m + 3 else m, year = m - 9, year + 1 end
    lastDate = format('%04d-%02d-%02dT%02d:%02d:', year, m, d, floor(minute / 60) % 24, minute % 60)
  end
  return lastDate .. format('%02d.%03dZ', floor(t / 1000) % 60, t % 1000)
end

local function parse(s)
  local ok, st = pcall(cjson.decode, s or '')
  return s and ok and type(st) == 'table' and st
end

local runWords = '^(%S+) (%d+) (%d+) (%d+) (%d) (.*)$'

-- join puts a run over a state.
local function join(st, run)
  local token, notes, _, at, capped, node = string.match(st and run or '', runWords)
  if token then
    st.notes = notes
    st.status, st.run, st.node, st.runStarted, st.away = 'running', token, node, at, nil
    st.capped, st.started = capped == '1', st.started or at
    if num(st.attempts) == 0 then st.attempts = '1' end
  end
  return st
end

-- fetch gives the state of a task, nil when there is none that can be read;
-- fetchAll reads those of several ahead.
local function fetch(K, id)
  if not id then return nil end
  local st = K.states[id]
  if st == nil then
    if K.fresh[id] then
      st, K.changed[id], K.fresh[id] = parse(K.fresh[id]), true, nil
    else
      st = join(parse(call('HGET', K.state, id)), call('HGET', K.runs, id))
    end
    K.states[id] = st
  end
  return st or nil
end

local function fetchAll(K, ids)
  if #ids < 2 then return end
  local runs = call('HMGET', K.runs, unpack(ids))
  for i, s in ipairs(call('HMGET', K.state, unpack(ids))) do K.states[ids[i]] = join(parse(s), runs[i]) end
end

local function store(K, id, st) K.states[id], K.changed[id], K.fresh[id] = st, true, nil end

-- lineOf gives what order says under a name, false for nothing, setLine changes it;
-- linesAhead reads several ahead.
local function lineOf(K, name)
  local l = K.lines[name]
  if l == nil then
    l = call('HGET', K.order, name)
    K.lines[name] = l
  end
  return l
end

local function setLine(K, name, line) K.lines[name], K.moved[name] = line, true end

local function linesAhead(K, names)
  if #names < 2 then return end
  local got = call('HMGET', K.order, unpack(names))
  for i, name in ipairs(names) do
    if K.lines[name] == nil then K.lines[name] = got[i] or false end
  end
end

-- mark puts a member into a set sorted by text, or takes it out.
local function mark(K, set, member, stays)
  local s = K.marks[set]
  if not s then
    s = {}
    K.marks[set] = s
  end
  s[member] = stays
end

local function settleMarks(K, set)
  local marks = K.marks[set]
  if not marks then return end
  local add, adds, del, dels = {}, 0, {}, 0
  for member, stays in pairs(marks) do
    if stays then
      add[adds + 1] = 0
      add[adds + 2] = member
      adds = adds + 2
    else
      dels = dels + 1
      del[dels] = member
    end
  end
  K.marks[set] = nil
  if dels > 0 then call('ZREM', K[set], unpack(del)) end
  if adds > 0 then call('ZADD', K[set], unpack(add)) end
end

-- under gives the members of a set sorted by text that begin with a word or words,
-- at most n; first the first of them.
local function under(K, set, prefix, n)
  settleMarks(K, set)
  return call('ZRANGEBYLEX', K[set], '[' .. prefix .. ' ', '(' .. prefix .. '!', 'LIMIT', 0, n)
end
local function first(K, set, prefix) return under(K, set, prefix, 1)[1] end

-- word is how the index calls a status. Pending and running are one there: what
-- runs is in runs, and a task changes between them most often.
local words = {pending = 'live', running = 'live', succeeded = 'done'}
local function word(status) return words[status] or status end

local function move(K, id, st, to)
  local was, is = word(st.status), word(to)
  if was ~= is then
    if (was or '') ~= '' then mark(K, 'index', 's ' .. was .. ' ' .. id, false) end
    mark(K, 'index', 's ' .. is .. ' ' .. id, true)
  end
  st.status = to
end

local function signal(K, text) call('PUBLISH', K.signal, text) end

-- entry makes an entry of a task: of its row the beginning of its payload, the
-- which-th line, and the fields of an entry as core/channel spells them, of which
-- the second is the stop number and the last the payload.
local function entry(row, which, stop, tail)
  local at, f, head = string.find(row, '\n', 1, true), {}
  for n = -1, 1000 do
    local till = at and string.find(row, '\n', at + 1, true)
    if not till then break end
    if n > 0 then f[n] = string.sub(row, at + 1, till - 1) elseif n + 2 == which then head = string.sub(row, at + 1, till - 1) end
    at = till
  end
  if #f < 2 then return nil end -- stored by nobody
  f[2], f[#f] = stop, head .. tail
  return f
end

local function speak(K)
  local ids, convs = {}, {}
  for i, x in ipairs(K.said) do ids[i], convs[i] = x.id, x.conv end
  if #ids == 0 then return end
  local rows, stops = call('HMGET', K.rows, unpack(ids)), call('HMGET', K.stops, unpack(convs))
  for i, x in ipairs(K.said) do
    local f = entry(rows[i] or '', x.which, stops[i] or '0', x.tail)
    if f then call('XADD', x.stream, '*', unpack(f)) end
  end
  K.said = {}
end

-- flush writes what was gathered; the states last, so that what an error cuts off
-- is not taken for done.
local function flush(K)
  for set in pairs(K.marks) do settleMarks(K, set) end
  local set, del = {}, {}
  for g in pairs(K.moved) do
    if K.lines[g] then
      set[#set + 1] = g
      set[#set + 1] = K.lines[g]
    else
      del[#del + 1] = g
    end
  end
  if #set > 0 then call('HSET', K.order, unpack(set)) end
  if #del > 0 then call('HDEL', K.order, unpack(del)) end
  if #K.ends > 0 then call('ZADD', K.ended, unpack(K.ends)) end
  speak(K)
  local states = {}
  for id, s in pairs(K.fresh) do
    states[#states + 1] = id
    states[#states + 1] = s
  end
  for id in pairs(K.changed) do
    states[#states + 1] = id
    states[#states + 1] = cjson.encode(K.states[id])
  end
  if #states > 0 then call('HSET', K.state, unpack(states)) end
  -- Of very many heads it is enough to say that there are some.
  if #K.woke > 0 then signal(K, 'wake ' .. K.p .. (#K.woke > 100 and '' or ' ' .. table.concat(K.woke, ' '))) end
  K.moved, K.ends, K.changed, K.fresh, K.woke = {}, {}, {}, {}, {}
end
