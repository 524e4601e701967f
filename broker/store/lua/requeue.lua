-- requeue: sends a dead run back, as it died: the fence stays, tries begin anew. Names the fence of the death it is
-- about. Safe to repeat with the same op.
-- KEYS  per item: run, dead, ready, pools, idle, counter, retention, history
-- ARGV  per item: size, run, op, fence, by
-- Reply per item: accepted state | replayed state | conflict | unknown
--@use _runs
return each(function()
  local id, op, fence, by = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not r.exists then return { 'unknown' } end
  if f.requeue_op == op then return { 'replayed', f.state } end --@guard requeue-op
  if f.state ~= RUN.DEAD then return { 'conflict', 'run', f.state } end
  if f.fence ~= fence then return { 'conflict', 'fence', f.fence } end --@guard requeue-fence
  f.requeue_op = op
  place(SEG.dead, nil, id, false)
  local waits = tonumber(f.left) > 0 and not (f.mode == MODE.EACH and f.fresh)
  if waits then
    move(r, 'requeue', RUN.WAITING)
    f.tries = '0'
  else
    make_ready(r, 'requeue')
  end
  history(f.session, 'requeued', id, f.seq, '', f.state, by, op)
  return { 'accepted', f.state }
end)
