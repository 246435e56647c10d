-- note: keep a checkpoint, or an event of progress, of a run. Put after rows.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then the key to write
-- ARGV: id, token, seq of the run's notes, "checkpoint" or "progress", text, how many
--   events are kept
-- Returns {commit number, "ok" or "lost"}. What was noted before is not noted
-- again, and what comes late changes nothing: a run's notes are numbered.
local commits = call('INCR', KEYS[1])
local K, key = bind(KEYS, 2), KEYS[#KEYS]
local token, seq, rest = string.match(call('HGET', K.runs, ARGV[1]) or '', '^(%S+) (%d+) (.*)$')
if token ~= ARGV[2] then return {commits, 'lost'} end
if tonumber(ARGV[3]) > tonumber(seq) then
  if ARGV[4] == 'checkpoint' then
    call('SET', key, ARGV[5])
  else
    call('RPUSH', key, ARGV[5])
    call('LTRIM', key, -ARGV[6], -1)
  end
  call('HSET', K.runs, ARGV[1], token .. ' ' .. ARGV[3] .. ' ' .. rest)
end
return {commits, 'ok'}
