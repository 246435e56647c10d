-- states: the state of tasks. Put after rows, and after a line that is made of the Go
-- table: chart, which holds " from>to " for each status that may follow another.

local function may(from, to) return string.find(chart, ' ' .. tostring(from) .. '>' .. to .. ' ', 1, true) ~= nil end

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
