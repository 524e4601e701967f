-- say: input for a run that has begun and is not closed, behind what was said before; kept in order while the run is.
-- Safe to repeat with the same op.
-- KEYS  per item: run, said, history, retention
-- ARGV  per item: size, run, op, by, digest, input, most inputs
-- Reply per item: accepted count | replayed place | unknown | conflict | full count
return each(function()
  local id, op, by, digest, input, most = arg(), arg(), arg(), arg(), arg(), tonumber(arg())
  local r = load('run', id)
  local f = r.f
  if not r.exists then return { 'unknown' } end
  local place = read('HGET', key('said', id), 'op ' .. op)
  if place then return { 'replayed', place } end --@guard say-once
  if f.state == RUN.FINISHED or f.state == RUN.WITHDRAWN then return { 'conflict', 'run', f.state } end --@guard say-closed
  local count = tonumber(f.said or '0')
  if count >= most then return { 'full', int(count) } end --@guard say-room
  set(r, 'said', int(count + 1))
  write('HSET', 'said', id, int(count), input)
  write('HSET', 'said', id, 'op ' .. op, int(count))
  history(f.session, 'said', { run = id, seq = f.seq, state = f.state, by = by, op = op, digest = digest })
  return { 'accepted', f.said }
end)
