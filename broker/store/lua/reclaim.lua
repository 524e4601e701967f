-- reclaim: what a passed timer of a run asks for: a lost lease is taken back, a back-off that is over ends. Checks
-- state and time itself, so the list of due ids is a hint and two sweepers at once do no harm. Safe to repeat.
-- KEYS  per item: run, errors, timers, ready, pools, idle, counter, dead, dispositions, retention, history
-- ARGV  per item: size, run, pause
-- Reply per item: reclaimed state | offered | nothing
--@use _runs
local function reclaim(id, pause)
  local r = load(SEG.run, id)
  local f = r.f
  if f.state == RUN.LEASED then
    if tonumber(f.lease_until) > now then return { 'nothing' } end --@guard reclaim-time
    note_error(r, 'lease_lost', f.holder or '')
    history(f.session, 'lease_lost', id, f.seq, '', '', '', f.fence, '', f.holder)
    return { 'reclaimed', give_back(r, 'reclaim', pause, 'lease lost') }
  end
  if f.state == RUN.READY and f.ready_at then
    if tonumber(f.ready_at) > now then return { 'nothing' } end --@guard offer-time
    f.ready_at, f.nonce = nil, nil
    touch(r)
    place(SEG.timers, nil, 'r ' .. id, false)
    offer(r)
    return { 'offered' }
  end
  place(SEG.timers, nil, 'r ' .. id, false)
  return { 'nothing' }
end

return each(function()
  local id, pause = arg(), tonumber(arg())
  return unless_corrupt(SEG.timers, nil, 'r ' .. id, function() return reclaim(id, pause) end)
end)
