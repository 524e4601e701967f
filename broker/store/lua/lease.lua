-- lease: one ready run (or one whose lease has run out) for the caller alone. Safe to repeat with the same nonce.
-- KEYS  per item: run, ready, timers, retention, history, counter, dead, dispositions, errors
-- ARGV  per item: size, run, nonce, sequence (empty: whatever it is at), holder, lease
-- Reply per item: leased record | nothing state
--@use _runs
return each(function()
  local id, nonce, seq, holder, lease = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not r.exists then return { 'nothing', '' } end
  if seq ~= '' and f.seq ~= seq then return { 'nothing', f.state } end --@guard lease-seq
  if f.state == RUN.LEASED and f.nonce == nonce then return { 'leased', cmsgpack.pack(f) } end
  local over = f.state == RUN.LEASED and tonumber(f.lease_until) <= now
  if f.state ~= RUN.READY and not over then return { 'nothing', f.state } end --@guard lease-state
  -- What was handed to a job has a nonce, and waits for that job only.
  if f.ready_at and not f.nonce and tonumber(f.ready_at) > now then return { 'nothing', f.state } end --@guard back-off
  if over then note_error(r, 'lease_lost', f.holder or '') end
  place(SEG.ready, pool_of(r), id, false)
  if tonumber(f.tries) >= TRIES then --@guard lease-tries
    give_back(r, 'lease', 0, 'too many attempts') --@guard lease-tries
    return { 'nothing', f.state } --@guard lease-tries
  end --@guard lease-tries
  move(r, 'lease', RUN.LEASED)
  f.fence, f.tries = sum(f.fence, 1), sum(f.tries, 1)
  f.nonce, f.holder, f.lease_until, f.ready_at = nonce, some(holder), int(now + tonumber(lease)), nil
  f.handed = nil
  -- Handed out, not spent: only finish or the next suspension spends an answer.
  f.shown = f.fresh
  place(SEG.timers, nil, 'r ' .. id, f.lease_until)
  history(f.session, 'leased', id, f.seq, '', RUN.LEASED, '', f.fence, '', holder)
  r.packed = cmsgpack.pack(f)
  return { 'leased', r.packed }
end)
