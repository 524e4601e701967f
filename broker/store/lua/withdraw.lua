-- withdraw: takes back a suspension, and with it the run. Names the sequence it is about; once refused under a lease,
-- always refused. Safe to repeat with the same op.
-- KEYS  per item: run, calls, active, timers, retention, history, counter, ready, pools, idle, dispositions, dead,
--       lists; per interrupt of the run: interrupt, open, unseen (default and verdict where
--       the policy is a default answer)
-- ARGV  per item: size, run, op, sequence, by, reason, how its open interrupts end (a state)
-- Reply per item: accepted state | replayed state | unknown | conflict | settled state (closed or another sequence)
--@use _runs
--@use _calls
--@use _interrupts
return each(function()
  local id, op, seq, by, why, ends = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not r.exists then return { 'unknown' } end
  if f.withdraw_op == op then return { 'replayed', f.state } end --@guard withdraw-op
  if has(f.refused, op, ' ') then return { 'conflict', 'leased', f.state } end --@guard withdraw-refused
  local closed = f.state == RUN.FINISHED or f.state == RUN.WITHDRAWN
  if closed or f.seq ~= seq then return { 'settled', f.state, '', '', '', '', '' } end --@guard withdraw-seq
  for _, one in ipairs(words(f.ids)) do
    local i = load(SEG.interrupt, one)
    if due(i) then expire(i) end --@guard withdraw-due
  end
  -- Only now: in mode first, one that expires takes others with it.
  local open = {}
  for _, one in ipairs(words(f.ids)) do
    local i = load(SEG.interrupt, one)
    if i.f.state == SET.OPEN then open[#open + 1] = i end
  end
  if f.state == RUN.LEASED and #open == 0 then --@guard withdraw-leased
    f.refused = (f.refused and f.refused .. ' ' or '') .. op --@guard withdraw-leased
    touch(r) --@guard withdraw-leased
    return { 'conflict', 'leased', f.state } --@guard withdraw-leased
  end --@guard withdraw-leased
  for _, i in ipairs(open) do
    local operation = ends == SET.SUPERSEDED and 'supersede' or 'withdraw'
    settle(i, ends, { operation = operation, op = op, by = by, detail = why, quiet = true })
  end
  f.withdraw_op = op
  touch(r)
  if f.state == RUN.LEASED then
    move(r, 'withdraw', RUN.LEASED)
    return { 'accepted', f.state }
  end
  place(SEG.ready, pool_of(r), id, false)
  place(SEG.dead, nil, id, false)
  place(SEG.timers, nil, 'r ' .. id, false)
  f.ready_at = nil
  move(r, 'withdraw', RUN.WITHDRAWN)
  close_run(r, RUN.WITHDRAWN, by, op, why)
  return { 'accepted', f.state }
end)
