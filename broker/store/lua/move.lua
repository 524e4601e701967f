-- move: takes a run, with its open interrupts, to another queue; its state stays. Safe to repeat.
-- KEYS  per item: run, ready and idle (of both pools), pools, counter, retention, history; per interrupt of the run:
--       interrupt, open_queue (of both queues)
-- ARGV  per item: size, run, queue, by
-- Reply per item: accepted state | unknown | conflict
return each(function()
  local id, queue, by = arg(), arg(), arg()
  local r = load('run', id)
  local f = r.f
  if not r.exists then return { 'unknown' } end
  if f.state == RUN.FINISHED or f.state == RUN.WITHDRAWN then return { 'conflict', 'run', f.state } end
  -- Its worker writes under the old queue; it can be moved when the lease has ended.
  if f.state == RUN.LEASED then return { 'conflict', 'run', f.state } end --@guard move-leased
  if f.queue == queue then return { 'accepted', f.state } end
  local offered = f.state == RUN.READY and not f.ready_at
  if offered then write('ZREM', 'ready', pool_of(r), id) end
  for _, one in ipairs(words(f.ids)) do
    local i = load('interrupt', one)
    if i.f.state == SET.OPEN then
      write('ZREM', 'open_queue', i.f.queue, one)
      write('ZADD', 'open_queue', queue, i.f.number, one)
    end
    set(i, 'queue', queue)
  end
  history(f.session, 'moved', { run = id, seq = f.seq, state = f.state, by = by, detail = f.queue .. ' to ' .. queue })
  set(r, 'queue', queue)
  if offered then offer(r) end
  return { 'accepted', f.state }
end)
