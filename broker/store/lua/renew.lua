-- renew: more time for leases that are still held, even one that has run out and that nobody took. Safe to repeat.
-- KEYS  per item: run, timers
-- ARGV  per item: size, run, fence, nonce, lease
-- Reply per item: ok lease_until | stale_lease
return each(function()
  local id, fence, nonce, lease = arg(), arg(), arg(), tonumber(arg())
  local r = load('run', id)
  if not holds(r, fence, nonce) then return { 'stale_lease', r.f.state or '' } end
  set(r, 'lease_until', int(now + lease))
  write('ZADD', 'timers', nil, r.f.lease_until, 'r ' .. id)
  stirred = false -- it only moves a time away
  return { 'ok', r.f.lease_until }
end)
