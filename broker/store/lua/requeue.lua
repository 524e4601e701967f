-- requeue: sends a dead run back, as it died: the fence stays, tries begin anew. Names the fence of the death it is
-- about. Safe to repeat with the same op.
-- KEYS  per item: run, dead, ready, pools, idle, counter, retention, history
-- ARGV  per item: size, run, op, fence, by
-- Reply per item: accepted state | replayed state | conflict | unknown
return each(function()
  local id, op, fence, by = arg(), arg(), arg(), arg()
  local r = load('run', id)
  local f = r.f
  if not r.exists then return { 'unknown' } end
  if f.requeue_op == op then return { 'replayed', f.state } end --@guard requeue-op
  if f.state ~= RUN.DEAD then return { 'conflict', 'run', f.state } end
  if f.fence ~= fence then return { 'conflict', 'fence', f.fence } end --@guard requeue-fence
  set(r, 'requeue_op', op)
  write('ZREM', 'dead', nil, id)
  local waits = tonumber(f.left) > 0 and not (f.mode == MODE.EACH and f.fresh)
  if waits then
    move(r, 'requeue', RUN.WAITING)
    set(r, 'tries', '0')
  else
    make_ready(r, 'requeue')
  end
  history(f.session, 'requeued', { run = id, seq = f.seq, state = f.state, by = by, op = op })
  return { 'accepted', f.state }
end)
