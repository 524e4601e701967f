-- lease: one ready run (or one whose lease has run out) for the caller alone. Safe to repeat with the same nonce.
-- KEYS  per item: run, ready, timers, retention, history, counter, dead, dispositions, errors
-- ARGV  per item: size, run, nonce, sequence (empty: whatever it is at), holder, lease
-- Reply per item: leased record | nothing state
return each(function()
  local id, nonce, seq, holder, lease = arg(), arg(), arg(), arg(), tonumber(arg())
  local r = load('run', id)
  local f = r.f
  if not r.exists then return { 'nothing', '' } end
  if seq ~= '' and f.seq ~= seq then return { 'nothing', f.state } end --@guard lease-seq
  if f.state == RUN.LEASED and f.nonce == nonce then return { 'leased', cmsgpack.pack(f) } end
  local over = f.state == RUN.LEASED and tonumber(f.lease_until) <= now
  if f.state ~= RUN.READY and not over then return { 'nothing', f.state } end --@guard lease-state
  if f.ready_at and tonumber(f.ready_at) > now then return { 'nothing', f.state } end --@guard back-off
  if over then note_error(r, 'lease_lost', f.holder or '') end
  write('ZREM', 'ready', pool_of(r), id)
  if tonumber(f.tries or '0') >= TRIES then --@guard lease-tries
    give_back(r, 'lease', 0, 'too many attempts') --@guard lease-tries
    return { 'nothing', f.state } --@guard lease-tries
  end --@guard lease-tries
  move(r, 'lease', RUN.LEASED)
  bump(r, 'fence', 1)
  bump(r, 'tries', 1)
  set(r, 'nonce', nonce)
  set(r, 'holder', holder)
  set(r, 'lease_until', int(now + lease))
  set(r, 'ready_at', '')
  -- Handed out, not spent: only finish or the next suspension spends an answer.
  set(r, 'shown', f.fresh or '')
  write('ZADD', 'timers', nil, f.lease_until, 'r ' .. id)
  history(f.session, 'leased', { run = id, seq = f.seq, state = RUN.LEASED, detail = holder, op = f.fence })
  return { 'leased', cmsgpack.pack(f) }
end)
