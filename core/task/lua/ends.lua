-- ends: how a task ends, and who is told. Put after states.

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

function speak(K)
  local ids, convs = {}, {}
  for i, x in ipairs(K.said) do ids[i], convs[i] = x.id, x.conv end
  local rows, stops = call('HMGET', K.rows, unpack(ids)), call('HMGET', K.stops, unpack(convs))
  for i, x in ipairs(K.said) do
    local f = entry(rows[i] or '', x.which, stops[i] or '0', x.tail)
    if f then call('XADD', x.stream, '*', unpack(f)) end
  end
  K.said = {}
end

-- result spells a task's end as the JSON of a chat.TaskResult, from where the first
-- of its lines ends.
local function raw(d, name, v)
  if v and v ~= '' then d[#d + 1] = ',"' .. name .. '":' .. v end
end
local function text(d, name, v)
  if v and v ~= '' then d[#d + 1] = ',"' .. name .. '":' .. cjson.encode(v) end
end

local function result(st)
  local d = {',"status":"' .. st.status .. '"'}
  text(d, 'resultType', st.resultType)
  text(d, 'output', st.output)
  raw(d, 'outputSize', st.outputSize)
  text(d, 'error', st.error)
  text(d, 'failureReason', st.reason)
  raw(d, 'attempts', st.attempts)
  text(d, 'archivePath', st.archive)
  if st.started then d[#d + 1] = ',"startedAt":"' .. iso(st.started) .. '"' end
  if st.completed then d[#d + 1] = ',"completedAt":"' .. iso(st.completed) .. '"' end
  raw(d, 'durationMs', st.ran)
  if st.usage then
    local u = {}
    for name, n in pairs(st.usage) do u[#u + 1] = '"' .. name .. '":' .. n end
    raw(d, 'usage', '{' .. table.concat(u, ',') .. '}')
  end
  if st.status == 'canceled' then
    raw(d, 'canceledBy', st.cancelBy)
    text(d, 'cancelReason', st.cancelReason)
  end
  if st.status == 'waiting' then raw(d, 'question', st.question) end
  d[#d + 1] = '}'
  return table.concat(d)
end

-- tell adds an entry of a task to a stream; which line its payload begins with, and
-- how it goes on.
local function tell(K, stream, id, st, which, tail)
  K.said[#K.said + 1] = {stream = stream, id = id, conv = st.conv, which = which, tail = tail}
end

-- publish tells those who wait for a result: people by way of the teller, or for
-- planners' and internal tasks the supervisor alone; and the supervisor also when
-- a trigger watches.
local function publish(K, id, st)
  local tail = result(st)
  if st.audience ~= 'supervisor' then tell(K, K.results, id, st, 1, tail) end
  if st.audience == 'supervisor' or (st.watched or '') ~= '' then tell(K, K.events, id, st, 1, tail) end
end

-- note tells those who run the bot that a run has failed.
local function note(K, id, st, kind, now)
  tell(K, K.feedback, id, st, 2, ',"kind":"' .. kind .. '","message":' .. cjson.encode(st.error or '') .. ',"at":"' .. iso(now) .. '"}')
end

-- finish ends a task and publishes its one result.
local function finish(K, id, st, to, now)
  move(K, id, st, to)
  st.completed, st.node, st.run, st.due, st.enqueued, st.seq = ms(now), nil, nil, nil, nil, nil
  -- Nobody takes the digest of a task that was not to be canceled.
  if (st.dedupe or '') ~= '' and (not st.cancelAt or lineOf(K, st.dedupe) == id) then setLine(K, st.dedupe, false) end
  K.ends[#K.ends + 1] = st.completed
  K.ends[#K.ends + 1] = id
  publish(K, id, st)
end
