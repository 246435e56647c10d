-- ops: what a commit may do to a task that is there, see extension. Put after cancel.
local ops = {}

function ops.cancel(K, key, a, now)
  local id = a[4]
  local st = fetch(K, id)
  if not st or (a[5] ~= '' and a[5] ~= st.conv) then return {'unknown', id} end
  local did = cancel(K, id, st, {a[6], a[7], a[8]}, now)
  if did == 'canceled' then call('DEL', key) end
  cascade(K, 50, now)
  if call('ZCARD', K.cascade) > 0 then signal(K, 'sweep ' .. K.p) end
  return {did, id, fetch(K, id).status}
end

function ops.answer(K, _, a, now)
  local id, question = a[4], a[5]
  local st = fetch(K, id)
  if not st then return {'unknown', id} end
  if st.asked ~= question then return {'other', id} end
  if st.status ~= 'waiting' then return {st.answered == question and st.answer == a[6] and 'answered' or 'closed', id} end
  st.answered, st.answer, st.answeredBy = question, a[6], a[7]
  enqueue(K, id, st, now)
  store(K, id, st)
  return {'answered', id}
end

-- A trigger that begins to watch a task that is over is told of its end at once.
function ops.watch(K, _, a)
  local id, who = a[4], ' ' .. a[5] .. ' '
  local st = fetch(K, id)
  if not st then return {'unknown', id} end
  if not string.find(st.watched or '', who, 1, true) then
    st.watched = (st.watched or '') .. who
    store(K, id, st)
    if st.completed then tell(K, K.events, id, st, 1, result(st)) end
  end
  return {'watched', id}
end

function ops.unwatch(K, _, a)
  local id, who = a[4], ' ' .. a[5] .. ' '
  local st = fetch(K, id)
  if not st then return {'unknown', id} end
  local from, to = string.find(st.watched or '', who, 1, true)
  if from then
    st.watched = string.sub(st.watched, 1, from - 1) .. string.sub(st.watched, to + 1)
    store(K, id, st)
    if st.completed and st.watched == '' then call('ZADD', K.ended, st.completed, id) end
  end
  return {'unwatched', id}
end

function ops.archived(K, _, a)
  local id = a[4]
  local st = fetch(K, id)
  if not st then return {'unknown', id} end
  if not st.completed then return {'open', id} end
  st.archive = a[5]
  store(K, id, st)
  return {'archived', id}
end

-- A task that runs has its storage.
function ops.store(K, _, a, now)
  local id, storage, class = a[4], a[5], a[6]
  local st = fetch(K, id)
  if not st then return {'unknown', id} end
  if st.class == class and st.storage == storage then return {'moved', id} end
  if st.completed then return {'over', id} end
  if st.status == 'running' then return {'running', id} end
  local queued = st.status == 'pending'
  if queued then unqueue(K, id, st) end
  st.storage, st.class, st.away = storage, class, nil
  if queued then enqueue(K, id, st, now) end
  store(K, id, st)
  return {'moved', id}
end

local function other(K, key, a, now) return ops[a[1]](K, key, a, now) end
