-- beat: show that runs live. Put after states.
--
-- KEYS[1] commit number, KEYS[2..] those of rows
-- ARGV: for each run: id, token
-- Returns {commit number, for each "ok", "canceled" when it is to end, or "lost"
--   when it is not a run any more}
local K = bind(KEYS, 2)
local out, set = {call('INCR', KEYS[1])}, {}
for i = 1, #ARGV, 2 do
  local id = ARGV[i]
  local token, seq, beats, rest = string.match(call('HGET', K.runs, id) or '', '^(%S+) (%d+) (%d+) (.*)$')
  if token == ARGV[i + 1] then
    set[#set + 1] = id
    set[#set + 1] = token .. ' ' .. seq .. ' ' .. ms(num(beats) + 1) .. ' ' .. rest
    out[#out + 1] = (fetch(K, id) or {cancelAt = ''}).cancelAt and 'canceled' or 'ok'
  else
    out[#out + 1] = 'lost'
  end
end
if #set > 0 then call('HSET', K.runs, unpack(set)) end
return out
