-- extension: what a commit of core/channel may do to tasks. Put after ends. call.lua
-- runs the same functions without a commit around them.
--
-- keys: those of rows, in their order; then for a create with a long prompt its key,
--   for a cancel the task's checkpoint
-- args: op, signal channel, number of the partition, then by op
--   create    id, row, state, when it is due (ms) or "", the whole of a long prompt
--   cancel    id, conversation or "" for any, JSON of who, why, commit id
--   answer    id, question, text, JSON of who
--   watch     id, trigger        unwatch   id, trigger
--   archived  id, path
-- apply gives {what it did, id}; "unknown" when there is no such task, or not in
-- that conversation.
local ops = {}

function ops.create(K, keys, a, now)
  local id, st = a[4], cjson.decode(a[6])
  local there = fetch(K, id)
  if there then return {there.made == st.made and 'created' or 'exists', id} end
  if (st.dedupe or '') ~= '' then
    local same = call('HGET', K.dedupe, st.dedupe)
    -- One that is to end soon is not what was asked for now.
    if same and (fetch(K, same) or {cancelAt = ''}).cancelAt then same = nil end
    if same and st.given ~= '1' then return {'same', same} end
    if not same then call('HSET', K.dedupe, st.dedupe, id) end
  end
  call('HSET', K.rows, id, a[5])
  if a[8] then call('SET', keys[#keys], a[8]) end
  st.created, st.attempts = ms(now), '0'
  for _, m in ipairs({'a ', 'c ' .. st.conv .. ' ', 'r ' .. st.requester .. ' '}) do call('ZADD', K.index, 0, m .. id) end
  local parent
  if (st.parent or '') ~= '' then
    parent = fetch(K, st.parent)
    if parent and parent.conv ~= st.conv then
      parent, st.parent = nil, '' -- nobody of another conversation cancels it
    else
      call('ZADD', K.index, 0, 'p ' .. st.parent .. ' ' .. id)
    end
  end
  if a[7] ~= '' and tonumber(a[7]) > now then
    st.due = a[7]
    move(K, id, st, 'deferred')
    call('ZADD', K.deferred, st.due, id)
    signal(K, 'wake ' .. K.p)
  else
    enqueue(K, id, st, now)
  end
  store(K, id, st)
  -- What a canceled task would still start is canceled before it begins.
  if parent and parent.cancelAt then
    cancel(K, id, st, {parent.cancelBy, parent.cancelReason, parent.cancelId .. '>'}, now)
    signal(K, 'sweep ' .. K.p)
  end
  return {'created', id}
end

function ops.cancel(K, keys, a, now)
  local id = a[4]
  local st = fetch(K, id)
  if not st or (a[5] ~= '' and a[5] ~= st.conv) then return {'unknown', id} end
  local did = cancel(K, id, st, {a[6], a[7], a[8]}, now)
  if did == 'canceled' then call('DEL', keys[#keys]) end
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
    if st.completed then tell(K, K.events, st, result(st)) end
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

return {
  check = function(keys, a) look(bind(keys, 1, a[2], a[3])) end,
  apply = function(keys, a, now) return ops[a[1]](bind(keys, 1, a[2], a[3]), keys, a, tonumber(now)) end,
}
