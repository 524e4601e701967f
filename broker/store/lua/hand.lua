-- hand: a ready run is on its way to a job of another system: it leaves the list of those that are ready, until somebody
-- leases it or its time is over, which doubles each time. Safe to repeat with the same nonce, which sets the time anew.
-- KEYS  per item: run, ready, timers
-- ARGV  per item: size, run, nonce, holder, how long
-- Reply per item: handed count | nothing state
--@use _runs
return each(function()
  local id, nonce, holder, span = args()
  local r = load(SEG.run, id)
  local f = r.f
  if f.state ~= RUN.READY then return { 'nothing', f.state or '' } end --@guard hand-state
  if f.nonce ~= nonce then
    if f.ready_at then return { 'nothing', f.state } end --@guard hand-once
    f.handed = sum(f.handed, 1)
    place(SEG.ready, pool_of(r), id, false)
  end
  f.nonce, f.holder = nonce, some(holder)
  f.ready_at = int(now + tonumber(span) * 2 ^ math.min(tonumber(f.handed) - 1, 4))
  touch(r)
  place(SEG.timers, nil, 'r ' .. id, f.ready_at)
  return { 'handed', f.handed }
end)
