-- ends: how a task ends, and who is told. Put after queue.

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
