-- ends: how a task ends, and who is told. Put after queue.

-- result spells a task's end as the JSON of a chat.TaskResult, from where the first
-- of its lines ends.
local function result(st)
  local d = {}
  local function raw(name, v)
    if v and v ~= '' then d[#d + 1] = ',"' .. name .. '":' .. v end
  end
  local function text(name, v)
    if v and v ~= '' then raw(name, cjson.encode(v)) end
  end
  text('status', st.status)
  text('resultType', st.resultType)
  text('output', st.output)
  raw('outputSize', st.outputSize)
  text('error', st.error)
  text('failureReason', st.reason)
  raw('attempts', st.attempts)
  text('archivePath', st.archive)
  raw('startedAt', st.started and '"' .. iso(st.started) .. '"')
  raw('completedAt', st.completed and '"' .. iso(st.completed) .. '"')
  raw('durationMs', st.ran)
  if st.usage then
    local u = {}
    for name, n in pairs(st.usage) do u[#u + 1] = '"' .. name .. '":' .. n end
    raw('usage', '{' .. table.concat(u, ',') .. '}')
  end
  if st.status == 'canceled' then
    raw('canceledBy', st.cancelBy)
    text('cancelReason', st.cancelReason)
  end
  if st.status == 'waiting' then raw('question', st.question) end
  return table.concat(d) .. '}'
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
  if (st.dedupe or '') ~= '' then
    K.freed[#K.freed + 1] = st.dedupe
    K.freed[#K.freed + 1] = id
  end
  K.ends[#K.ends + 1] = st.completed
  K.ends[#K.ends + 1] = id
  publish(K, id, st)
end
