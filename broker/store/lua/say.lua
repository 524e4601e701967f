-- say: input for a run that has begun and is not closed, behind what was said before; kept in order while the run is.
-- Safe to repeat with the same op.
-- KEYS  per item: run, said, history, retention
-- ARGV  per item: size, run, op, by, digest, input, most inputs
-- Reply per item: accepted count | replayed place | unknown | conflict | full count
--@use _runs
return each(function()
  local id, op, by, digest, input, most = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not r.exists then return { 'unknown' } end
  local said = map(SEG.said, id)
  local before = get(said, 'op ' .. op)
  if before then return { 'replayed', before } end --@guard say-once
  if f.state == RUN.FINISHED or f.state == RUN.WITHDRAWN then return { 'conflict', 'run', f.state } end --@guard say-closed
  local count = tonumber(f.said or '0')
  if count >= tonumber(most) then return { 'full', int(count) } end --@guard say-room
  f.said = int(count + 1)
  touch(r)
  set(said, int(count), input)
  set(said, 'op ' .. op, int(count))
  history(f.session, 'said', id, f.seq, '', f.state, by, op, digest)
  return { 'accepted', f.said }
end)
