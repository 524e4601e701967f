-- adopt: the record of a run that is executing already, leased to the caller. Safe to repeat with the same nonce.
-- KEYS  per item: run, input, timers, retention, history, pools
-- ARGV  per item: size, run, session, queue, agent, build, priority, nonce, holder, lease, not_after, longest window,
--       by, input
-- Reply per item: accepted fence lease_until | conflict | unknown (came too late) | invalid
--@use _runs
return each(function()
  local id, session, queue, agent, build, priority, nonce, holder, lease, not_after, longest, by, input = args()
  local r = load(SEG.run, id)
  local f = r.f
  if r.exists then
    if f.state == RUN.LEASED and f.seq == '0' and f.nonce == nonce then return { 'accepted', f.fence, f.lease_until } end
    return { 'conflict', 'run', f.state }
  end
  not_after = tonumber(not_after)
  if not_after <= now then return { 'unknown' } end --@guard adopt-in-time
  if not_after > now + tonumber(longest) then return { 'invalid', 'not_after' } end --@guard adopt-window
  move(r, 'adopt', RUN.LEASED)
  create(r, session, queue, agent, build, priority)
  f.fence, f.tries, f.start_op, f.nonce, f.holder = '1', '1', 'adopt:' .. nonce, nonce, some(holder)
  f.lease_until = int(now + tonumber(lease))
  if input ~= '' then put(SEG.input, id, input) end
  place(SEG.timers, nil, 'r ' .. id, f.lease_until)
  place(SEG.pools, nil, pool_of(r))
  history(session, 'adopted', id, '0', '', RUN.LEASED, by, f.start_op)
  return { 'accepted', '1', f.lease_until }
end)
