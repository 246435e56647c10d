-- beat: show that runs live. Put after rows.
--
-- KEYS[1] commit number, KEYS[2..] those of rows
-- ARGV: tokens …
-- Returns {commit number, for each "ok", "canceled" when it is to end, or "lost"
--   when it is not a run any more}
local K = bind(KEYS, 2)
local out = {call('INCR', KEYS[1])}
for i, token in ipairs(ARGV) do
  local run = call('HGET', K.runs, token)
  local st = run and fetch(K, string.match(run, '^(%S+)'))
  if st and st.run == token then
    call('HINCRBY', K.beats, token, 1)
    out[i + 1] = st.cancelAt and 'canceled' or 'ok'
  else
    out[i + 1] = 'lost'
  end
end
return out
