-- rows: what every script of tasks knows: the keys of a partition and the state
-- of a task. It is put before the scripts, after two lines that are made of the Go
-- tables: chart (status → the statuses that may follow) and step (ms of waiting
-- that one step of priority is worth).
--
-- The state of a task is a JSON object of strings: Lua's numbers lose digits on
-- their way through cjson, and what a later build adds comes through unharmed.
-- Where a set is told to be sorted by text, all scores are 0 and its members are
-- words with spaces between; no word has a space of its own.
local call = redis.call
local types = {
  'rows', 'h', -- id → JSON of what never changes; no script looks into it
  'state', 'h', -- id → JSON of what scripts read and change
  'index', 'z', -- by text: "a id", "c conversation id", "r requester id", "s status id", "p parent id"
  'queue', 'z', -- by text: "class conversation score priority seq id" of what is pending
  'order', 'h', -- seq: how many tasks were enqueued, for those of one millisecond
  'ready', 'z', -- by text: "class score conversation": whose turn it is
  'heads', 'h', -- "class conversation" → "since score", or "since parked"
  'parked', 'z', -- by text: "conversation class" of those at their cap
  'deferred', 'z', -- id, by when it is due (ms)
  'runs', 'h', -- run token → "id seq"
  'beats', 'h', -- run token → how often it has shown that it lives
  'load', 'h', -- conversation → how many of its tasks run
  'dedupe', 'h', -- digest → id of the task that is not over
  'ended', 'z', -- id, by when it ended (ms), or by when it was last found to be watched
  'cascade', 'z', -- id of a canceled task: 0 while its children are to be canceled, then 1 for its triggers
  'results', 'x', 'events', 'x', 'feedback', 'x', -- streams of core/channel
  'stops', 'h', -- of core/channel: conversation → stop number
}

-- bind gives names to the keys that begin at keys[from]; signal is the pub/sub
-- channel and p the partition's number.
local function bind(keys, from, signal, p)
  local K = {signal = signal, p = p}
  for i = 1, #types / 2 do K[types[2 * i - 1]] = keys[from + i - 1] end
  return K
end

-- look runs into a key that holds another type, before anything is changed.
local function look(K)
  for i = 1, #types, 2 do
    call(({h = 'HLEN', z = 'ZCARD', x = 'XLEN'})[types[i + 1]], K[types[i]])
  end
end

local function clock()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function num(s) return tonumber(s or '') or 0 end
local function ms(n) return string.format('%.0f', tonumber(n)) end
local function pad(n) return string.format('%016.0f', tonumber(n)) end
local function may(from, to) return (chart[from] or {})[to] end

-- iso spells a time in ms as RFC 3339.
local function iso(t)
  t = num(t)
  local floor = math.floor
  local days, rest = floor(t / 86400000), t % 86400000
  -- Years that begin in March have their leap day last, so one formula counts them.
  local day = days + 719468
  local era = floor(day / 146097)
  local inEra = day - era * 146097
  local year = floor((inEra - floor(inEra / 1460) + floor(inEra / 36524) - floor(inEra / 146096)) / 365)
  local inYear = inEra - (365 * year + floor(year / 4) - floor(year / 100))
  local m = floor((5 * inYear + 2) / 153)
  local d = inYear - floor((153 * m + 2) / 5) + 1
  year = year + era * 400
  if m < 10 then m = m + 3 else m, year = m - 9, year + 1 end
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, m, d,
    floor(rest / 3600000), floor(rest / 60000) % 60, floor(rest / 1000) % 60, rest % 1000)
end

-- fetch gives the state of a task, nil when there is none that can be read.
local function fetch(K, id)
  local s = id and call('HGET', K.state, id)
  if not s then return nil end
  local ok, st = pcall(cjson.decode, s)
  if ok and type(st) == 'table' then return st end
  return nil
end

local function store(K, id, st) call('HSET', K.state, id, cjson.encode(st)) end

-- word is how the index calls a status.
local function word(status) return status == 'succeeded' and 'done' or status end

local function move(K, id, st, to)
  if st.status and st.status ~= '' then call('ZREM', K.index, 's ' .. word(st.status) .. ' ' .. id) end
  call('ZADD', K.index, 0, 's ' .. word(to) .. ' ' .. id)
  st.status = to
end

-- under are the bounds of the members of a set sorted by text that begin with a
-- word or words.
local function under(prefix) return '[' .. prefix .. ' ', '(' .. prefix .. '!' end

local function first(key, prefix)
  local from, to = under(prefix)
  return call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, 1)[1]
end

local function signal(K, text) call('PUBLISH', K.signal, text) end
