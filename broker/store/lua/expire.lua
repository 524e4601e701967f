-- expire: ends interrupts whose deadline has passed, as the policy of each says, and those whose job has missed a
-- heartbeat, or rings for them again. Checks state and time itself, so the list of due ids is a hint and two sweepers at
-- once do no harm. Safe to repeat.
-- KEYS  per item: interrupt, run, calls, timers, retention, history, counter, ready, pools, idle, dispositions, lists,
--       open, unseen, interrupts; default and verdict where the policy is a default answer
-- ARGV  per item: size, interrupt
-- Reply per item: expired state | rung | nothing
--@use _runs
--@use _calls
--@use _interrupts
-- A heartbeat was missed where that ends nothing: the next one is due a span from now.
local function remind(i)
  local f = i.f
  f.beat_by = int(now + tonumber(f.beat))
  arm(i)
  ring_interrupt(i)
  history(f.session, 'heartbeat_missed', f.run, f.seq, i.id, SET.OPEN, '', 'expire 0')
  return { 'rung' }
end

return each(function()
  local id = arg()
  return unless_corrupt(SEG.timers, nil, 'i ' .. id, function()
    local i = load(SEG.interrupt, id)
    if i.f.state == SET.OPEN and missed(i.f) and not due(i) then return remind(i) end --@guard beat-ring
    if not due(i) then --@guard expire-check
      if i.f.state ~= SET.OPEN then place(SEG.timers, nil, 'i ' .. id, false) end --@guard expire-check
      return { 'nothing' } --@guard expire-check
    end --@guard expire-check
    expire(i)
    return { 'expired', i.f.state }
  end)
end)
