-- heartbeat: a job done elsewhere tells that it still runs; the next time that it has to is a span from now. One that
-- comes after the span, or after the deadline, changes nothing: the job has failed by then. Safe to repeat.
-- KEYS  per item: interrupt, run, calls, timers, retention, history, counter, ready, pools, idle, dispositions, lists,
--       open, unseen
-- ARGV  per item: size, interrupt
-- Reply per item: accepted interrupt state until (empty: nobody asked for heartbeats) | unknown |
--       settled state at answer by op
--@use _runs
--@use _calls
--@use _interrupts
return each(function()
  local i = load(SEG.interrupt, arg())
  local f = i.f
  if not i.exists then return { 'unknown' } end
  if due(i) and f.expiry ~= EXPIRY.DEFAULT then expire(i) end --@guard beat-in-time
  if f.state ~= SET.OPEN then return facts(f) end --@guard beat-open
  if f.beat then
    f.beat_by = int(now + tonumber(f.beat))
    touch(i)
    arm(i)
  end
  return { 'accepted', i.id, f.state, f.beat_by or '' }
end)
