-- sweep: the right to sweep a partition for a while. Everything a sweeper does may be done twice, so this saves work and
-- decides nothing; that is why it may expire by itself. Safe to repeat.
-- KEYS  sweeper, counter, timers, retention, unseen of each audience
-- ARGV  per item: size, name of the sweeper, for how long (milliseconds; 0 gives it up), audiences
-- Reply per item: yes held (1: by this one until now) now counter unseen first-timer first-retention (empty: none) |
--                 no holder
local function first(index)
  return read('ZRANGE', key(index), 0, 0, 'WITHSCORES')[2] or ''
end

return each(function()
  local name, span, audiences, unseen = arg(), tonumber(arg()), words(arg()), 0
  local holder = read('GET', key(SEG.sweeper))
  -- Names begin with what their process may do: one that may write verdicts does more, and takes the right over.
  local stronger = holder and string.sub(name, 1, 2) == 'd ' and string.sub(holder, 1, 2) ~= 'd '
  if holder and holder ~= name and not stronger then return { 'no', holder } end --@guard sweep-held
  if span > 0 then
    local sweeper = key(SEG.sweeper)
    need(sweeper, 'string')
    pending[#pending + 1] = { 'SET', sweeper, name, 'PX', int(span) }
  elseif holder == name then
    write('DEL', SEG.sweeper)
  end
  for _, audience in ipairs(audiences) do unseen = unseen + read('ZCARD', key(SEG.unseen, audience)) end
  return { 'yes', holder == name and '1' or '', NOW, read('GET', key(SEG.counter)) or '0', int(unseen), first(SEG.timers), first(SEG.retention) }
end)
