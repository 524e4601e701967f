-- expire: ends interrupts whose deadline has passed, as the policy of each says. Checks state and time itself, so the
-- list of due ids is a hint and two sweepers at once do no harm. Safe to repeat.
-- KEYS  per item: interrupt, run, calls, timers, retention, history, counter, ready, pools, idle, dispositions, lists,
--       open, unseen; default and verdict where the policy is a default answer
-- ARGV  per item: size, interrupt
-- Reply per item: expired state | nothing
--@use _runs
--@use _calls
--@use _interrupts
return each(function()
  local id = arg()
  return unless_corrupt(SEG.timers, nil, 'i ' .. id, function()
    local i = load(SEG.interrupt, id)
    if not due(i) then --@guard expire-check
      if i.f.state ~= SET.OPEN then place(SEG.timers, nil, 'i ' .. id, false) end --@guard expire-check
      return { 'nothing' } --@guard expire-check
    end --@guard expire-check
    expire(i)
    return { 'expired', i.f.state }
  end)
end)
