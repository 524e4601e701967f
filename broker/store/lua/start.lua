-- start: a run's record, ready for its pool, at sequence 0. Safe to repeat: the same op gets `replayed`.
-- KEYS  per item: run, input, retention, history, counter, ready, pools, idle
-- ARGV  per item: size, run, session, queue, agent, build, priority, op, not_after, longest window, by, input
-- Reply per item: accepted | replayed | conflict | unknown (came too late) | invalid
return each(function()
  local id, session, queue, agent, build, priority = arg(), arg(), arg(), arg(), arg(), arg()
  local op, not_after, longest, by, input = arg(), tonumber(arg()), tonumber(arg()), arg(), arg()
  local r = load('run', id)
  if r.exists then
    if r.f.start_op ~= op then return { 'conflict', 'run', r.f.state } end --@guard start-op
    if r.f.state == RUN.READY and not r.f.ready_at then ring_ready(r) end
    return { 'replayed', r.f.state }
  end
  if not_after <= now then return { 'unknown' } end --@guard start-in-time
  if not_after > now + longest then return { 'invalid', 'not_after' } end --@guard start-window
  move(r, 'start', RUN.READY)
  create(r, { session = session, queue = queue, agent = agent, build = build, priority = priority, start_op = op })
  if input ~= '' then write('SET', 'input', id, input) end
  offer(r)
  history(session, 'started', { run = id, seq = '0', state = RUN.READY, by = by, op = op })
  return { 'accepted', RUN.READY }
end)
