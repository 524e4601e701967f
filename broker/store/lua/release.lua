-- release: gives a run back unharmed (a drain is no failure). A repeat is told stale_lease and changes nothing.
-- KEYS  per item: run, timers, ready, pools, idle, counter, retention, history
-- ARGV  per item: size, run, fence, nonce
-- Reply per item: ok | stale_lease
--@use _runs
return each(function()
  local id, fence, nonce = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not holds(r, fence, nonce) then return { 'stale_lease', f.state or '' } end
  unlease(r)
  f.tries = sum(f.tries, -1) --@guard release-try
  move(r, 'release', RUN.READY)
  offer(r)
  history(f.session, 'released', id, f.seq, '', RUN.READY, '', fence)
  return { 'ok' }
end)
