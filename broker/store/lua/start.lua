-- start: a run's record, ready for its pool, at sequence 0. Safe to repeat: the same op gets `replayed`.
-- KEYS  per item: run, input, retention, history, counter, ready, pools, idle
-- ARGV  per item: size, run, session, queue, agent, build, priority, op, not_after, longest window, by, input
-- Reply per item: accepted | replayed | conflict | unknown (came too late) | invalid
--@use _runs
return each(function()
  local id, session, queue, agent, build, priority, op, not_after, longest, by, input = args()
  local r = load(SEG.run, id)
  local f = r.f
  if r.exists then
    if f.start_op ~= op then return { 'conflict', 'run', f.state } end --@guard start-op
    if f.state == RUN.READY and not f.ready_at then ring_ready(r) end
    return { 'replayed', f.state }
  end
  not_after = tonumber(not_after)
  if not_after <= now then return { 'unknown' } end --@guard start-in-time
  if not_after > now + tonumber(longest) then return { 'invalid', 'not_after' } end --@guard start-window
  move(r, 'start', RUN.READY)
  create(r, session, queue, agent, build, priority)
  f.start_op = op
  if input ~= '' then put(SEG.input, id, input) end
  offer(r)
  history(session, 'started', id, '0', '', RUN.READY, by, op)
  return { 'accepted', RUN.READY }
end)
