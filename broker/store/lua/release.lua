-- release: gives a run back unharmed (a drain is no failure). A repeat is told stale_lease and changes nothing.
-- KEYS  per item: run, timers, ready, pools, idle, counter, retention, history
-- ARGV  per item: size, run, fence, nonce
-- Reply per item: ok | stale_lease
return each(function()
  local id, fence, nonce = arg(), arg(), arg()
  local r = load('run', id)
  if not holds(r, fence, nonce) then return { 'stale_lease', r.f.state or '' } end
  unlease(r)
  bump(r, 'tries', -1) --@guard release-try
  move(r, 'release', RUN.READY)
  offer(r)
  history(r.f.session, 'released', { run = id, seq = r.f.seq, state = RUN.READY, op = fence })
  return { 'ok' }
end)
