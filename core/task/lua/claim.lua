-- claim: begin to run the task whose turn it is. Put after ends.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then claims hash
-- ARGV: signal channel, number of the partition, claimer, seq, node, cap of a
--   conversation (0: none), worst score to take ("": any), classes …
-- Returns {commit number, now ms, score of the next head or "", when the next
--   deferred task is due or "", token, id, row, state}, without the last four when
--   there is nothing to take, and {commit number, "late"} when the claimer has
--   claimed anew since. A repeat is answered with the run that it was given.
--
-- claims: claimer → "seq ms token", so that a claim that Redis sees twice, or only
-- after its claimer has gone on, begins no run that nobody knows of.
local commits = call('INCR', KEYS[1])
local K, claims = bind(KEYS, 2, ARGV[1], ARGV[2]), KEYS[#KEYS]
local claimer, seq, node, cap, worst = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local classes = {unpack(ARGV, 8)}
local now = clock()
local last, _, token = string.match(call('HGET', claims, claimer) or '', '^(%d+) (%d+) (%S+)$')
if last and tonumber(last) > tonumber(seq) then return {commits, 'late'} end
local id, st
if last == seq then
  local run = call('HGET', K.runs, token)
  id = run and string.match(run, '^(%S+)')
  st = fetch(K, id)
else
  token = '-'
  pour(K, now)
  while true do
    local class, score, conv = best(K, classes, cap)
    if not class or (worst ~= '' and score > worst) then break end
    local spot = first(K.queue, class .. ' ' .. conv)
    id = string.match(spot or '', '(%S+)$')
    st = fetch(K, id)
    if st and may(st.status, 'running') and st.spot == spot then break end
    -- Nobody but another program leaves such places.
    call('ZREM', K.queue, spot or '')
    call('ZREM', K.ready, class .. ' ' .. score .. ' ' .. conv)
    rehead(K, class, conv, now)
    st = nil
  end
  if st then
    unqueue(K, st, now, now)
    move(K, id, st, 'running')
    if num(st.attempts) == 0 then st.attempts = '1' end
    token = st.attempts .. '-' .. claimer .. '-' .. seq
    st.run, st.node, st.runStarted = token, node, ms(now)
    st.started = st.started or ms(now)
    call('HINCRBY', K.load, st.conv, 1)
    call('HSET', K.runs, token, id .. ' 0')
    call('HSET', K.beats, token, '0')
    store(K, id, st)
  end
  call('HSET', claims, claimer, seq .. ' ' .. ms(now) .. ' ' .. token)
end
local score, later = outlook(K, classes, cap)
if not st then return {commits, ms(now), score, later} end
return {commits, ms(now), score, later, token, id, call('HGET', K.rows, id) or '', call('HGET', K.state, id)}
