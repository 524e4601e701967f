-- renew: more time for leases that are still held, even one that has run out and that nobody took. Safe to repeat.
-- KEYS  per item: run, timers
-- ARGV  per item: size, run, fence, nonce, lease
-- Reply per item: ok lease_until | stale_lease
--@use _runs
return each(function()
  local id, fence, nonce, lease = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not holds(r, fence, nonce) then return { 'stale_lease', f.state or '' } end
  f.lease_until = int(now + tonumber(lease))
  touch(r)
  place(SEG.timers, nil, 'r ' .. id, f.lease_until)
  stirred = false -- it only moves a time away
  return { 'ok', f.lease_until }
end)
