-- move: takes a run, with its open interrupts, to another queue; its state stays. Safe to repeat.
-- KEYS  per item: run, ready and idle (of both pools), pools, counter, retention, history, lists; per interrupt of the
--       run: interrupt, open (of both queues)
-- ARGV  per item: size, run, queue, by
-- Reply per item: accepted state | unknown | conflict
--@use _runs
--@use _calls
--@use _interrupts
return each(function()
  local id, queue, by = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not r.exists then return { 'unknown' } end
  if f.state == RUN.FINISHED or f.state == RUN.WITHDRAWN then return { 'conflict', 'run', f.state } end
  -- Its worker writes under the old queue; it can be moved when the lease has ended.
  if f.state == RUN.LEASED then return { 'conflict', 'run', f.state } end --@guard move-leased
  if f.queue == queue then return { 'accepted', f.state } end
  local offered = f.state == RUN.READY and not f.ready_at
  if offered then place(SEG.ready, pool_of(r), id, false) end
  for _, one in ipairs(words(f.ids)) do
    local i = load(SEG.interrupt, one)
    local open = i.f.state == SET.OPEN
    if open then list(i, false) end
    i.f.queue = queue
    if open then list(i, i.f.number) end
    touch(i)
  end
  history(f.session, 'moved', id, f.seq, '', f.state, by, '', '', f.queue .. ' to ' .. queue)
  f.queue = queue
  touch(r)
  if offered then offer(r) end
  return { 'accepted', f.state }
end)
