-- adopt: the record of a run that is executing already, leased to the caller. Safe to repeat with the same nonce.
-- KEYS  per item: run, input, timers, retention, history, pools
-- ARGV  per item: size, run, session, queue, agent, build, priority, nonce, holder, lease, not_after, longest window,
--       by, input
-- Reply per item: accepted fence lease_until | conflict | unknown (came too late) | invalid
return each(function()
  local id, session, queue, agent, build, priority = arg(), arg(), arg(), arg(), arg(), arg()
  local nonce, holder, lease = arg(), arg(), tonumber(arg())
  local not_after, longest, by, input = tonumber(arg()), tonumber(arg()), arg(), arg()
  local r = load('run', id)
  if r.exists then
    if r.f.state == RUN.LEASED and r.f.seq == '0' and r.f.nonce == nonce then
      return { 'accepted', r.f.fence, r.f.lease_until }
    end
    return { 'conflict', 'run', r.f.state }
  end
  if not_after <= now then return { 'unknown' } end --@guard adopt-in-time
  if not_after > now + longest then return { 'invalid', 'not_after' } end --@guard adopt-window
  move(r, 'adopt', RUN.LEASED)
  local ends = int(now + lease)
  create(r, { session = session, queue = queue, agent = agent, build = build, priority = priority,
    fence = '1', tries = '1', start_op = 'adopt:' .. nonce, nonce = nonce, holder = holder, lease_until = ends })
  if input ~= '' then write('SET', 'input', id, input) end
  write('ZADD', 'timers', nil, ends, 'r ' .. id)
  write('SADD', 'pools', nil, pool_of(r))
  history(session, 'adopted', { run = id, seq = '0', state = RUN.LEASED, by = by, op = r.f.start_op })
  return { 'accepted', '1', ends }
end)
