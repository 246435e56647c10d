-- rows: what every script of tasks knows: the keys of a partition, how things are
-- spelled in them, and how what is changed is written. It is put before the scripts, each
-- with as little of the other files as it needs: to make a function that a script may
-- call costs it half a microsecond, as often as it runs.
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

-- kinds are the types of the keys of a partition in the order in which bind takes them:
-- a hash, a sorted set, a stream.
local kinds = 'hhzzhzzzhhzzxxxh'

-- bind gives names to the keys that begin at keys[from], and makes what flush writes;
-- signal is the pub/sub channel and p the partition's number.
local function bind(keys, from, signal, p)
  return {
    signal = signal, p = p,
    rows = keys[from], -- id → what never changes: a line of JSON that no script looks into, and the lines of which entries about the task are made: the beginning of a result, that of a feedback, the fields of an entry
    state = keys[from + 1], -- id → JSON of what scripts read and change
    index = keys[from + 2], -- by text: "c conversation id", "r requester id", "s status id", "p parent id", "n storage id"
    queue = keys[from + 3], -- by text: "class conversation score priority seq id" of what is pending behind a head
    order = keys[from + 4], -- what a word or two say: "class conversation" → the head, see heads.lua; digest → id of the task that is not over; seq: how many tasks were enqueued, for those of one millisecond
    ready = keys[from + 5], -- by text: "class score conversation": whose turn it is
    parked = keys[from + 6], -- by text: "conversation class" of those at their cap
    deferred = keys[from + 7], -- id, by when it is due (ms)
    runs = keys[from + 8], -- id of what runs → "token seq beats ms capped node": its last note, how often it has shown that it lives, since when, "1" when it counts in load
    load = keys[from + 9], -- conversation → how many of its tasks run, of those claimed under a cap
    ended = keys[from + 10], -- id, by when it ended (ms), or by when it was last found to be watched
    cascade = keys[from + 11], -- id of a canceled task: 0 while its children are to be canceled, then 1 for its triggers
    results = keys[from + 12], events = keys[from + 13], feedback = keys[from + 14], -- streams of core/channel
    stops = keys[from + 15], -- of core/channel: conversation → stop number
    marks = {}, states = {}, changed = {}, fresh = {}, lines = {}, moved = {}, ends = {}, said = {}, woke = {},
  }
end

-- look runs into a key that holds another type, before anything is changed.
local function look(keys, from)
  for i = 1, #kinds do
    call(({h = 'HLEN', z = 'ZCARD', x = 'XLEN'})[string.sub(kinds, i, i)], keys[from + i - 1])
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

-- last is the last word of a text. (A pattern that may begin anywhere is tried from
-- everywhere.)
local function last(s) return string.match(s, '^.* (%S+)$') end

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
-- at most n.
local function under(K, set, prefix, n)
  settleMarks(K, set)
  return call('ZRANGEBYLEX', K[set], '[' .. prefix .. ' ', '(' .. prefix .. '!', 'LIMIT', 0, n)
end

local function signal(K, text) call('PUBLISH', K.signal, text) end

local speak -- of ends, where there is something to tell

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
  if #K.said > 0 then speak(K) end
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
