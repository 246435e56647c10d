-- extension: what a commit of core/channel may do to tasks. Put after queue, and
-- after cancel and ops, which are made when they are needed. call.lua runs the same
-- functions without a commit around them.
--
-- keys: those of rows, in their order; then for a create with a long prompt its key,
--   for a cancel the task's checkpoint
-- args: op, signal channel, number of the partition, then by op
--   create    id, row, state, when it is due (ms) or "", of the state
--             conversation, class, priority, requester, parent, audience, dedupe and made,
--             "1" when its id was given, the whole of a long prompt
--   cancel    id, conversation or "" for any, JSON of who, why, commit id
--   answer    id, question, text, JSON of who
--   watch     id, trigger        unwatch   id, trigger
--   archived  id, path
--   store     id, storage, class
-- apply gives {what it did, id}; "unknown" when there is no such task, or not in
-- that conversation.
local function create(K, key, a, now)
  local id, made = a[4], a[15]
  local st = {conv = a[8], class = a[9], priority = a[10], requester = a[11], parent = a[12], audience = a[13], dedupe = a[14]}
  if call('HSETNX', K.rows, id, a[5]) == 0 then
    local there = fetch(K, id)
    if there then return {there.made == made and 'created' or 'exists', id} end
    call('HSET', K.rows, id, a[5])
  end
  if st.dedupe ~= '' then
    local same = lineOf(K, st.dedupe)
    -- One that is to end soon is not what was asked for now.
    if not same or (fetch(K, same) or {cancelAt = ''}).cancelAt then
      setLine(K, st.dedupe, id)
    elseif a[16] ~= '1' then
      call('HDEL', K.rows, id)
      return {'same', same}
    else
      st.dedupe = '' -- it stands for the other one
    end
  end
  if a[17] then call('SET', key, a[17]) end
  mark(K, 'index', 'c ' .. st.conv .. ' ' .. id, true)
  mark(K, 'index', 'r ' .. st.requester .. ' ' .. id, true)
  local parent
  if st.parent ~= '' then
    parent = fetch(K, st.parent)
    if parent and parent.conv ~= st.conv then
      parent, st.parent = nil, '' -- nobody of another conversation cancels it
    else
      mark(K, 'index', 'p ' .. st.parent .. ' ' .. id, true)
    end
  end
  if a[7] ~= '' and tonumber(a[7]) > now then
    st.due = a[7]
    defer(K, id, st)
  else
    enqueue(K, id, st, now)
  end
  -- What the caller spelled of the state is taken as it stands.
  local begun = '{"created":"' .. ms(now) .. '","attempts":"0","status":"' .. st.status .. '"'
  if st.enqueued then begun = begun .. ',"enqueued":"' .. st.enqueued .. '","seq":"' .. st.seq .. '"' end
  if st.due then begun = begun .. ',"due":"' .. st.due .. '"' end
  K.states[id], K.fresh[id] = nil, begun .. ',' .. string.sub(a[6], 2)
  if a[12] ~= st.parent then fetch(K, id).parent = '' end
  if a[14] ~= st.dedupe then fetch(K, id).dedupe = '' end
  -- What a canceled task would still start is canceled before it begins.
  if parent and parent.cancelAt then
    st = fetch(K, id)
    cancel(K, id, st, {parent.cancelBy, parent.cancelReason, parent.cancelId .. '>'}, now)
    signal(K, 'sweep ' .. K.p)
  end
  return {'created', id}
end

-- apply does one op.
local function apply(K, key, a, now)
  if a[1] == 'create' then return create(K, key, a, now) end
  return other(K, key, a, now)
end

-- before reads ahead what the creations among ops will ask of order.
local function before(K, list)
  local names = {}
  for _, x in ipairs(list) do
    local a = x[2]
    if a[1] == 'create' then
      names[#names + 1] = a[9] .. ' ' .. a[8]
      if a[14] ~= '' then names[#names + 1] = a[14] end
    end
  end
  if #names > 0 then
    names[#names + 1] = 'seq'
    linesAhead(K, names)
  end
end

-- A commit may call several times, with the same keys each time; call.lua may be served
-- for several partitions.
local looked = {}
return {
  -- of gives what other extensions may know of a task: its conversation, whether it
  -- was canceled, and whether it is over; nil when there is none.
  of = function(keys, id)
    local st = fetch(bind(keys, 1), id)
    return st and {conv = st.conv, canceled = st.cancelAt ~= nil, over = st.completed ~= nil} or nil
  end,
  check = function(keys)
    if not looked[keys[1]] then look(keys, 1) end
    looked[keys[1]] = true
  end,
  apply = function(keys, a, now)
    local K = bind(keys, 1, a[2], a[3])
    local did = apply(K, keys[#kinds + 1], a, tonumber(now))
    flush(K)
    return did
  end,
  -- all does several, each with the number of its own key in keys, and its args.
  all = function(keys, list, now)
    local K, out = bind(keys, 1, list[1][2][2], list[1][2][3]), {}
    before(K, list)
    for i, x in ipairs(list) do out[i] = apply(K, keys[x[1]], x[2], now) end
    flush(K)
    return out
  end,
}
