-- save: keep a text, unless a later lease was given. KEYS[1] epoch, KEYS[2] state. ARGV: fence, text
-- Returns 1, or 0 when the fence is too old. The lease of one place only: with several, the newest may write.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
return 1
