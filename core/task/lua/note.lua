-- note: keep a checkpoint, or an event of progress, of a run. Put after rows.
--
-- KEYS[1] commit number, KEYS[2..] those of rows, then the key to write
-- ARGV: token, seq of the run's notes, "checkpoint" or "progress", text, how many
--   events are kept
-- Returns {commit number, "ok" or "lost"}. What was noted before is not noted
-- again, and what comes late changes nothing: a run's notes are numbered.
local commits = call('INCR', KEYS[1])
local K, key = bind(KEYS, 2), KEYS[#KEYS]
local id, seq = string.match(call('HGET', K.runs, ARGV[1]) or '', '^(%S+) (%d+)$')
if not id then return {commits, 'lost'} end
if tonumber(ARGV[2]) > tonumber(seq) then
  if ARGV[3] == 'checkpoint' then
    call('SET', key, ARGV[4])
  else
    call('RPUSH', key, ARGV[4])
    call('LTRIM', key, -ARGV[5], -1)
  end
  call('HSET', K.runs, ARGV[1], id .. ' ' .. ARGV[2])
end
return {commits, 'ok'}
