-- rows: what every script of triggers knows: the keys of a partition and the state
-- of a trigger. It is put before the scripts.
--
-- The state of a trigger is a JSON object of strings (Lua's numbers lose digits on
-- their way through cjson) and of objects of strings that are never empty; what a
-- later build adds comes through unharmed. Sets have all scores 0 and are sorted by
-- text; their members are words with spaces between, and no word has one of its own.
local call = redis.call

-- bind gives names to the keys that begin at keys[from]; those of tasks follow.
--   rows     hash: id → JSON of what never changes; no script looks into it
--   state    hash: id → JSON of what scripts read and change
--   index    "a id", "c conversation id", "r requester id", "p parent id", and
--            "w what id" for each task and trigger that a trigger waits for
--   due      "class ms id" of what is to be looked at; a class names who can
--   gone     id, by when it was removed (ms)
--   results  stream worker-result     stops  hash of the conversations' stop numbers
local function bind(keys, from, signal, p, tasksSignal)
  local K = {signal = signal, p = p, tasksSignal = tasksSignal}
  for i, name in ipairs({'rows', 'state', 'index', 'due', 'gone', 'results', 'stops'}) do K[name] = keys[from + i - 1] end
  K.tasks = {unpack(keys, from + 7)}
  return K
end

local function num(s) return tonumber(s or '') or 0 end
local function ms(n) return string.format('%.0f', tonumber(n)) end
local function pad(n) return string.format('%016.0f', math.max(0, tonumber(n))) end

local function clock()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- fetch gives the state of a trigger, nil when there is none that can be read.
local function fetch(K, id)
  local s = id and call('HGET', K.state, id)
  if not s then return nil end
  local ok, st = pcall(cjson.decode, s)
  if ok and type(st) == 'table' then return st end
  return nil
end

local function store(K, id, st) call('HSET', K.state, id, cjson.encode(st)) end

-- schedule says when a trigger is looked at next; at "" or nil is when something is
-- heard. Who looks has known of the time before, if there was one: only an earlier one
-- is told.
local function schedule(K, id, st, at)
  local was = st.due
  if was then call('ZREM', K.due, st.class .. ' ' .. was .. ' ' .. id) end
  st.due = nil
  if not at or at == '' then return end
  st.due = pad(at)
  call('ZADD', K.due, 0, st.class .. ' ' .. st.due .. ' ' .. id)
  if not was or st.due < was then call('PUBLISH', K.signal, K.p) end
end

-- under are the members of a set sorted by text that begin with a word or words.
local function under(key, prefix) return call('ZRANGEBYLEX', key, '[' .. prefix .. ' ', '(' .. prefix .. '!') end
local function last(member) return string.match(member, '(%S+)$') end
