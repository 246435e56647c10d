-- extension: what a commit of core/channel may do to triggers. Put after rows; the
-- table extensions, with the extension of core/task, is known around it. call.lua
-- runs the same functions without a commit around them.
--
-- keys: those of rows, those of tasks; then for what makes a task the key of its
--   long prompt, if it has one
-- args: op, signal channel, number of the partition, signal channel of tasks, then by op
--   create   id, row, state, when to look first (ms), most of a conversation, "1" when
--            all that it names must be there
--   turn     id, wish, args of a task's creation …
--   ask      wish, args of a task's creation …
--   heard    what: who waits for this task or trigger looks again
--   answers  id, task that asked, JSON of the answers
--   pause    id, conversation or "" for any, JSON of who, why, commit id
--   resume   id, conversation or "", when it runs next (ms) or "", when to look (ms), commit id,
--            JSON of who
--   remove   id, conversation or ""
-- apply gives {what it did, id, …}; "unknown" when there is no such trigger, or not
-- in that conversation; of a turn "busy", and which task, when it would start one while
-- the one that it started last is not over.
--
-- A wish is a JSON object. Of a turn: commit; rev that the state must have, none for
-- any; conv that it must be of, none for any; set, unset: fields of the state; due;
-- slot and task, when it fires; skip, when it leaves a run out; behind: the task whose
-- end it waits for to fire; remove, when it goes; tell: fields of an entry of
-- worker-result. Of an ask: commit, task, now, list of {id, rev, due}.
local ops = {}

-- tasks calls the extension of core/task.
local function tasks(K, now, ...)
  return extensions.task.apply(K.tasks, {...}, now)
end

-- create makes a task in the words of another package's call.
local function create(K, a, from, now)
  return extensions.task.apply(K.tasks, {unpack(a, from)}, now)
end

-- taskOf gives what is known of a task of the conversation, nil when there is none.
local function taskOf(K, conv, id)
  local t = extensions.task.of(K.tasks, id)
  return t and t.conv == conv and t or nil
end

-- conversation is that of a task or a trigger, nil when there is none of that id.
local function conversation(K, id)
  return (fetch(K, id) or extensions.task.of(K.tasks, id) or {}).conv
end

-- wait notes that a trigger waits for a task or a trigger; forget takes it back. Of
-- what belongs to another conversation it hears nothing.
local function wait(K, id, conv, what, now)
  if (conversation(K, what) or conv) ~= conv then return end
  call('ZADD', K.index, 0, 'w ' .. what .. ' ' .. id)
  if taskOf(K, conv, what) then tasks(K, now, 'watch', K.tasksSignal, K.p, what, id) end
end

local function forget(K, id, what, now)
  call('ZREM', K.index, 'w ' .. what .. ' ' .. id)
  tasks(K, now, 'unwatch', K.tasksSignal, K.p, what, id)
end

-- busy gives the task that a trigger started last while that is not over. One of
-- which nothing is known any more is over.
local function busy(K, st)
  local t = taskOf(K, st.conv, st.task)
  return t and not t.over and st.task or nil
end

-- names reports whether a trigger waits for a task by its condition.
local function names(st, what)
  for _, task in pairs(st.started or {}) do
    if task == what then return true end
  end
  return string.find(' ' .. (st.watch or '') .. ' ', ' ' .. what .. ' ', 1, true) ~= nil
end

-- stand notes the task whose end a trigger waits for to fire, nil for none.
local function stand(K, id, st, behind, now)
  local was = st.behind
  if was == behind then return end
  st.behind = behind
  if was and not names(st, was) then forget(K, id, was, now) end
  if behind then wait(K, id, st.conv, behind, now) end
end

-- rank is the role of who is told as JSON, and their id.
local function rank(who)
  local ok, v = pcall(cjson.decode, who or '')
  if not ok or type(v) ~= 'table' then return 0, '' end
  return tonumber(v.role) or 0, v.id or ''
end

-- look has a trigger looked at now, and makes void what was judged before.
local function look(K, id, st, now)
  st.rev = ms(num(st.rev) + 1)
  if not st.paused then schedule(K, id, st, ms(now)) end
  store(K, id, st)
end

-- heard has those look again that wait for a task or a trigger.
local function heard(K, what, now)
  for _, m in ipairs(under(K.index, 'w ' .. what)) do
    local st = fetch(K, last(m))
    if st then look(K, last(m), st, now) end
  end
end

-- knows reports whether a commit was applied before: the last ones are kept, since
-- a call that was sent twice may come late. commit notes one.
local function knows(st, id) return string.find(' ' .. (st.commits or '') .. ' ', ' ' .. id .. ' ', 1, true) end
local function commit(st, id)
  local list = id .. ' ' .. (st.commits or '')
  st.commits = string.match(list, '^(%S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+)') or list
  st.rev = ms(num(st.rev) + 1)
end

-- drop removes a trigger. Those that wait for its tasks look again. For a day it is
-- known that it was there, so that a late call does not make it anew.
local function drop(K, id, st, now)
  schedule(K, id, st, '')
  call('ZREM', K.index, 'a ' .. id, 'c ' .. st.conv .. ' ' .. id, 'r ' .. st.requester .. ' ' .. id, 'p ' .. (st.parent or '') .. ' ' .. id)
  for what in string.gmatch(st.watch or '', '%S+') do forget(K, id, what, now) end
  for _, what in pairs(st.started or {}) do forget(K, id, what, now) end
  if st.evalTask then forget(K, id, st.evalTask, now) end
  if st.behind then forget(K, id, st.behind, now) end
  call('HDEL', K.rows, id)
  call('HDEL', K.state, id)
  call('ZADD', K.gone, now, id)
  call('ZREMRANGEBYSCORE', K.gone, '-inf', ms(now - 86400000))
  heard(K, id, now)
end

-- fired tells those that wait for the tasks of a trigger which one it has started.
local function fired(K, id, conv, task, now)
  for _, m in ipairs(under(K.index, 'w ' .. id)) do
    local other = last(m)
    local st = fetch(K, other)
    if st and st.conv == conv then
      st.started = st.started or {}
      if st.started[id] and st.started[id] ~= task then forget(K, other, st.started[id], now) end
      st.started[id] = task
      wait(K, other, st.conv, task, now)
      look(K, other, st, now)
    end
  end
end

local function of(st, conv) return st and ((conv or '') == '' or st.conv == conv) end

function ops.create(K, a, now)
  local id, st = a[5], cjson.decode(a[7])
  local there = fetch(K, id)
  if there then return {there.made == st.made and 'created' or 'exists', id} end
  if call('ZSCORE', K.gone, id) then return {'gone', id} end
  local c = 'c ' .. st.conv
  if call('ZLEXCOUNT', K.index, '[' .. c .. ' ', '(' .. c .. '!') >= tonumber(a[9]) then return {'full', id} end
  for what in string.gmatch(a[10] == '1' and st.watch or '', '%S+') do
    if conversation(K, what) ~= st.conv then return {'strange', id, what} end
  end
  -- What a canceled task would still start later is not kept.
  local parent = (st.parent or '') ~= '' and taskOf(K, st.conv, st.parent)
  if parent and parent.canceled then return {'canceled', id} end
  call('HSET', K.rows, id, a[6])
  for _, m in ipairs({'a ', c .. ' ', 'r ' .. st.requester .. ' '}) do call('ZADD', K.index, 0, m .. id) end
  if (st.parent or '') ~= '' then call('ZADD', K.index, 0, 'p ' .. st.parent .. ' ' .. id) end
  for what in string.gmatch(st.watch or '', '%S+') do wait(K, id, st.conv, what, now) end
  st.created, st.rev = ms(now), '1'
  schedule(K, id, st, a[8])
  store(K, id, st)
  return {'created', id}
end

function ops.turn(K, a, now)
  local id, w = a[5], cjson.decode(a[6])
  local st = fetch(K, id)
  if not of(st, w.conv) then
    -- What removed it may have been this very call.
    local made = not st and w.task and extensions.task.of(K.tasks, w.task)
    return {made and 'done' or 'unknown', id}
  end
  if knows(st, w.commit) then return {'done', id} end
  if w.rev and st.rev ~= w.rev then return {'late', id} end
  if w.task and busy(K, st) then return {'busy', id, st.task} end
  for name, v in pairs(w.set or {}) do st[name] = v end
  for _, name in ipairs(w.unset or {}) do st[name] = nil end
  commit(st, w.commit)
  if w.task then
    create(K, a, 7, now)
    st.fired, st.task, st.slot = ms(num(st.fired) + 1), w.task, w.slot
  end
  if w.skip then st.skipped = ms(num(st.skipped) + 1) end
  -- What it still waits to fire for is not used up by a run out of turn.
  stand(K, id, st, w.keep and st.behind and w.task or w.behind, now)
  if w.tell then
    w.tell[2] = call('HGET', K.stops, st.conv) or '0'
    call('XADD', K.results, '*', unpack(w.tell))
  end
  if w.remove then
    schedule(K, id, st, '')
  elseif not w.keep then
    schedule(K, id, st, not st.paused and w.due)
  end
  store(K, id, st)
  if w.task then fired(K, id, st.conv, w.task, now) end
  if w.remove then drop(K, id, fetch(K, id) or st, now) end
  return {'done', id}
end

function ops.ask(K, a, now)
  local w, asked = cjson.decode(a[5]), 0
  for _, x in ipairs(w.list) do
    local st = fetch(K, x.id)
    if st and (st.rev == x.rev or st.evalTask == w.task) and not st.paused then
      if asked == 0 then create(K, a, 6, now) end
      asked = asked + 1
      if st.evalTask ~= w.task then
        if st.evalTask then forget(K, x.id, st.evalTask, now) end
        st.evalTask, st.lastEval, st.rev = w.task, w.now, ms(num(st.rev) + 1)
        wait(K, x.id, st.conv, w.task, now)
        schedule(K, x.id, st, x.due)
        store(K, x.id, st)
      end
    end
  end
  return {asked > 0 and 'done' or 'late', w.task}
end

function ops.heard(K, a, now)
  heard(K, a[5], now)
  return {'done', a[5]}
end

function ops.answers(K, a, now)
  local id, st = a[5], fetch(K, a[5])
  if not st then return {'unknown', id} end
  if st.evalTask ~= a[6] then return {'late', id} end
  forget(K, id, st.evalTask, now)
  st.evalTask, st.answers = nil, a[7]
  look(K, id, st, now)
  return {'done', id}
end

function ops.pause(K, a, now)
  local id, st = a[5], fetch(K, a[5])
  if not of(st, a[6]) then return {'unknown', id} end
  if knows(st, a[9]) then return {'paused', id} end
  -- A greater role takes a pause over, so that only one as great may end it.
  if st.paused and rank(a[7]) <= rank(st.pausedBy) then return {'again', id} end
  schedule(K, id, st, '')
  st.paused, st.pausedBy, st.pauseReason = ms(now), a[7], a[8]
  commit(st, a[9])
  store(K, id, st)
  return {'paused', id}
end

function ops.resume(K, a)
  local id, st = a[5], fetch(K, a[5])
  if not of(st, a[6]) then return {'unknown', id} end
  if knows(st, a[9]) then return {'resumed', id} end
  if not st.paused then return {'again', id} end
  local role, who = rank(st.pausedBy)
  local mine, me = rank(a[10])
  if role > math.max(mine, 1) and who ~= me then return {'above', id} end
  st.paused, st.pausedBy, st.pauseReason = nil, nil, nil
  commit(st, a[9])
  if a[7] ~= '' then st.next = a[7] end
  schedule(K, id, st, a[8])
  store(K, id, st)
  return {'resumed', id}
end

function ops.remove(K, a, now)
  local id, st = a[5], fetch(K, a[5])
  if not of(st, a[6]) then return {'unknown', id} end
  drop(K, id, st, now)
  return {'removed', id}
end

return {
  -- check runs into every key that is of another type, before anything is changed.
  check = function(keys, a)
    local K = bind(keys, 1, a[2], a[3], a[4])
    for _, key in ipairs({K.rows, K.state, K.stops}) do call('HLEN', key) end
    for _, key in ipairs({K.index, K.due, K.gone}) do call('ZCARD', key) end
    call('XLEN', K.results)
    extensions.task.check(K.tasks, {'', a[4], a[3]})
  end,
  apply = function(keys, a, now) return ops[a[1]](bind(keys, 1, a[2], a[3], a[4]), a, tonumber(now)) end,
}
