-- ends: how a task ends, and who is told. Put after queue.

-- result spells a task's end as the JSON of a chat.TaskResult.
local function result(st)
  local d = {st.head}
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

-- tell adds an entry of a task to a stream. Of the fields that core/channel
-- spells, the second is the stop number and the last the payload.
local function tell(K, stream, st, data)
  local f = {}
  for i, v in ipairs(st.entry) do f[i] = v end
  f[2] = call('HGET', K.stops, st.conv) or '0'
  f[#f] = data
  call('XADD', stream, '*', unpack(f))
end

-- publish tells those who wait for a result: people by way of the teller, or for
-- planners' and internal tasks the supervisor alone; and the supervisor also when
-- a trigger watches.
local function publish(K, st)
  local data = result(st)
  if st.audience ~= 'supervisor' then tell(K, K.results, st, data) end
  if st.audience == 'supervisor' or (st.watched or '') ~= '' then tell(K, K.events, st, data) end
end

-- note tells those who run the bot that a run has failed.
local function note(K, st, kind, now)
  tell(K, K.feedback, st, st.note .. ',"kind":"' .. kind .. '","message":' .. cjson.encode(st.error or '') .. ',"at":"' .. iso(now) .. '"}')
end

-- finish ends a task and publishes its one result.
local function finish(K, id, st, to, now)
  move(K, id, st, to)
  st.completed, st.node, st.run, st.due, st.enqueued = ms(now), nil, nil, nil, nil
  if (st.dedupe or '') ~= '' and call('HGET', K.dedupe, st.dedupe) == id then call('HDEL', K.dedupe, st.dedupe) end
  call('ZADD', K.ended, ms(now), id)
  publish(K, st)
end

-- cancel ends a task that does not run, flags one that does, and marks it, so that
-- what it started is canceled too, which may be the only thing left to do of one
-- that is over. by is {JSON of who, why, commit id}. It says what it did, or what
-- it did for the same commit id before: canceled, flagged or ended; or again, when
-- somebody had done it already.
local function cancel(K, id, st, by, now)
  if st.cancelId and st.cancelId == by[3] then return st.cancelWas end
  local over = not may(st.status, 'canceled')
  if st.cancelAt then return over and 'ended' or 'again' end
  st.cancelAt, st.cancelBy, st.cancelReason, st.cancelId = ms(now), by[1], by[2], by[3]
  call('ZADD', K.cascade, 0, id)
  if over then
    st.cancelWas = 'ended'
  elseif st.status == 'running' then
    st.cancelWas = 'flagged'
    signal(K, 'cancel ' .. id)
  else
    st.cancelWas = 'canceled'
    if st.status == 'pending' then unqueue(K, st, now) end
    if st.status == 'deferred' then call('ZREM', K.deferred, id) end
    finish(K, id, st, 'canceled', now)
  end
  store(K, id, st)
  return st.cancelWas
end

-- cascade cancels the children of what is marked, at most some, and leaves the
-- marks of what is not done.
local function cascade(K, most, now)
  while most > 0 do
    local id = call('ZRANGEBYSCORE', K.cascade, 0, 0, 'LIMIT', 0, 1)[1]
    if not id then return end
    local st = fetch(K, id)
    if not st then
      call('ZREM', K.cascade, id)
      most = most - 1
    else
      local from, to = under('p ' .. id)
      if st.cursor then from = '(p ' .. id .. ' ' .. st.cursor end
      local list = call('ZRANGEBYLEX', K.index, from, to, 'LIMIT', 0, most)
      for _, m in ipairs(list) do
        local child = string.match(m, '(%S+)$')
        local c = fetch(K, child)
        if c then cancel(K, child, c, {st.cancelBy, st.cancelReason, st.cancelId .. '>'}, now) end
        st.cursor = child
      end
      if #list < most then
        call('ZADD', K.cascade, 1, id)
        st.cursor = nil
      end
      store(K, id, st)
      most = most - #list - 1
    end
  end
end
