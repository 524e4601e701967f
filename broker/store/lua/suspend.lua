-- suspend: one pause of one run: its state, its interrupts, mark, indexes, timers and bells in one step. From a lease,
-- in place of a pause (`replace`), or as the first thing known of a run. Answers that came early are matched here.
-- Safe to repeat: the same point gets `replayed` and rings again for what is open.
-- KEYS  per item: run, state, input, calls, active, early, aliases, timers, retention, history, counter, ready, pools,
--       bell, interrupts, dispositions, open, and per interrupt (old and new): interrupt, question, default, unseen,
--       open_queue, open_tool, open_kind
-- ARGV  per item: size, a packed map (run, session, queue, agent, build, priority, op, digest, seq, mode, replace, fence,
--       nonce, not_after, longest window, by, kept ids, count of interrupts), input, state, and for each interrupt: id,
--       early (digests of early verdicts that were looked at, see _pause; *: none needs it), default answer, question,
--       and a packed map of the fields its record begins with. Its deadline: absent never, +n n from now, n absolute
-- Reply per item: accepted state | replayed state | conflict | stale_lease | unknown | invalid | recheck
--@use _calls
--@use _interrupts
--@use _pause
local function arguments()
  local a = cmsgpack.unpack(arg())
  a.input, a.state, a.kept, a.questions = arg(), arg(), {}, {}
  a.not_after, a.longest = tonumber(a.not_after), tonumber(a.longest)
  for _, id in ipairs(words(a.keep)) do a.kept[id] = true end
  for n = 1, tonumber(a.count) do
    a.questions[n] = { id = arg(), early = arg(), default = arg(), record = arg(), fields = cmsgpack.unpack(arg()) }
  end
  return a
end

-- Whether this pause may be made, and as which operation of the table. Returns the operation, or nil and the refusal.
local function permit(r, a)
  local f = r.f
  if not r.exists then
    if a.nonce then return nil, { 'stale_lease', '' } end
    if a.seq ~= '1' then return nil, { 'conflict', 'run', '' } end --@guard suspend-first
    if a.not_after <= now then return nil, { 'unknown' } end --@guard suspend-in-time
    if a.not_after > now + a.longest then return nil, { 'invalid', 'not_after' } end --@guard suspend-window
    map('calls', r.id, true)
    create(r, { session = a.session, queue = a.queue, agent = a.agent, build = a.build, priority = a.priority,
      start_op = a.op })
    if a.input ~= '' then write('SET', 'input', r.id, a.input) end
    return 'suspend'
  end
  if f.session ~= a.session then return nil, { 'conflict', 'session', f.state } end --@guard suspend-session
  if a.nonce then
    if not holds(r, a.fence, a.nonce) then return nil, { 'stale_lease', f.state } end
    if tonumber(a.seq) ~= tonumber(f.seq) + 1 then return nil, { 'conflict', 'sequence', f.seq } end --@guard suspend-seq
    expire_due(r)
    return 'suspend'
  end
  if a.replace ~= '1' then return nil, { 'conflict', 'run', f.state } end --@guard replace
  if tonumber(a.seq) ~= tonumber(f.seq) + 1 then return nil, { 'conflict', 'sequence', f.seq } end --@guard replace-seq
  if f.state == RUN.WAITING then expire_due(r) end
  if f.state ~= RUN.WAITING then return nil, { 'conflict', 'run', f.state } end
  return 'replace'
end

return each(function()
  local a = arguments()
  local r = load('run', a.run)
  if r.exists and r.f.suspend_op == a.op and r.f.seq == a.seq then
    if r.f.suspend_digest ~= a.digest then return { 'conflict', 'digest', r.f.state } end --@guard point-digest
    ring_all(r)
    return { 'replayed', r.f.state }
  end
  local shown = r.f.shown
  local operation, refusal = permit(r, a)
  if not operation then return refusal end
  local f = r.f
  if a.nonce then set(r, 'build', a.build ~= '' and a.build or nil) end --@guard suspend-build
  local ids, fresh = carry(r, a.seq, a.mode, a.kept, shown, a.op, a.by)
  if f.state == RUN.LEASED then unlease(r) end
  move(r, operation, RUN.WAITING)
  f.seq, f.suspend_op, f.suspend_digest, f.mode, f.suspended, f.tries = a.seq, a.op, a.digest, a.mode, NOW, '0'
  for _, q in ipairs(a.questions) do ids[#ids + 1] = q.id end
  set(r, 'ids', table.concat(ids, ' '))
  set(r, 'fresh', table.concat(fresh, ' '))
  write('SET', 'state', a.run, a.state)
  write('HSET', 'active', a.session, a.run, a.seq)
  for _, q in ipairs(a.questions) do add(r, a.session, a.seq, q) end
  -- Each question leaves an entry; a pause that only keeps old ones leaves its own.
  if #a.questions == 0 then history(a.session, 'suspended', { run = a.run, seq = a.seq, op = a.op, detail = 'kept' }) end
  for _, q in ipairs(a.questions) do
    if q.fields.call then match_early(r, a.session, a.seq, q) end --@guard early-match
  end
  local over = tonumber(f.left) == 0
  if f.state == RUN.WAITING and #fresh > 0 and (over or a.mode == MODE.EACH) then make_ready(r, 'settle') end --@guard carry-ready
  -- A pause that nothing can end is refused: it would wait for ever.
  if f.state == RUN.WAITING and over then error({ 'conflict', 'interrupts', f.state }) end --@guard nothing-open
  for _, q in ipairs(a.questions) do
    local i = load('interrupt', q.id)
    if i.f.state == SET.OPEN then ring_interrupt(i) end
  end
  return { 'accepted', f.state }
end)
