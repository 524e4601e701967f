-- suspend: one pause of one run: its state, its interrupts, mark, indexes, timers and bells in one step. From a lease,
-- in place of a pause (`replace`), or as the first thing known of a run. Answers that came early are matched here.
-- Safe to repeat: the same point gets `replayed` and rings again for what is open.
-- KEYS  per item: run, state, input, calls, active, early, aliases, timers, retention, history, counter, ready, pools,
--       idle, interrupts, dispositions, lists, and per interrupt (old and new): interrupt, question, default, unseen,
--       open
-- ARGV  per item: size, a packed map (run, session, queue, agent, build, priority, op, digest, seq, mode, replace, fence,
--       nonce, not_after, longest window, by, kept ids, count of interrupts), input, state, and for each interrupt: id,
--       early (digests of early verdicts that were looked at, see _pause; *: none needs it), default answer, question,
--       and a packed map of the fields its record begins with. Its deadline: absent never, +n n from now, n absolute
-- Reply per item: accepted state | replayed state | conflict | stale_lease | unknown | invalid | recheck
--@use _runs
--@use _calls
--@use _interrupts
--@use _pause
local function arguments()
  local a = cmsgpack.unpack(arg())
  a.input, a.state, a.questions = arg(), arg(), {}
  for n = 1, tonumber(a.count) do
    a.questions[n] = { id = arg(), early = arg(), default = arg(), record = arg(), f = cmsgpack.unpack(arg()) }
  end
  return a
end

-- Most pauses are the first of their run, with everything about it new.
local function look_for_new(a)
  local run, session = a.run, a.session
  local names = { key(SEG.run, run), key(SEG.state, run), key(SEG.calls, run), key(SEG.active, session),
    key(SEG.history, session), key(SEG.aliases, session), key(SEG.early, session) }
  for n, q in ipairs(a.questions) do
    names[6 + 2 * n], names[7 + 2 * n] = key(SEG.interrupt, q.id), key(SEG.question, q.id)
  end
  look(names)
end

-- Whether this pause may be made, and as which operation of the table. Returns the operation, or nil and the refusal.
local function permit(r, a)
  local f = r.f
  if not r.exists then
    if a.nonce then return nil, { 'stale_lease', '' } end
    if a.seq ~= '1' then return nil, { 'conflict', 'run', '' } end --@guard suspend-first
    local latest, longest = tonumber(a.not_after), tonumber(a.longest)
    if latest <= now then return nil, { 'unknown' } end --@guard suspend-in-time
    if latest > now + longest then return nil, { 'invalid', 'not_after' } end --@guard suspend-window
    create(r, a.session, a.queue, a.agent, a.build, a.priority)
    if a.input ~= '' then put(SEG.input, r.id, a.input) end
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
  local session, seq, questions = a.session, a.seq, a.questions
  look_for_new(a)
  local r = load(SEG.run, a.run)
  local f = r.f
  if r.exists and f.suspend_op == a.op and f.seq == seq then
    if f.suspend_digest ~= a.digest then return { 'conflict', 'digest', f.state } end --@guard point-digest
    ring_all(r)
    return { 'replayed', f.state }
  end
  local shown = f.shown
  local operation, refusal = permit(r, a)
  if not operation then return refusal end
  if a.nonce then f.build = some(a.build) end --@guard suspend-build
  local ids, fresh = carry(r, seq, a.mode, a.keep, shown, a.op, a.by)
  if f.state == RUN.LEASED then unlease(r) end
  move(r, operation, RUN.WAITING)
  f.seq, f.suspend_op, f.suspend_digest, f.mode, f.suspended, f.tries = seq, a.op, a.digest, a.mode, NOW, '0'
  for _, q in ipairs(questions) do ids[#ids + 1] = q.id end
  f.ids, f.fresh = some(table.concat(ids, ' ')), some(table.concat(fresh, ' '))
  put(SEG.state, a.run, a.state)
  write('HSET', SEG.active, session, a.run, seq)
  for _, q in ipairs(questions) do add(r, session, seq, q) end
  -- Each question leaves an entry; a pause that only keeps old ones leaves its own.
  if #questions == 0 then history(session, 'suspended', a.run, seq, '', '', '', a.op, '', 'kept') end
  local early = key(SEG.early, session)
  if types[early] ~= 'none' and redis_call('EXISTS', early) == 1 then
    for _, q in ipairs(questions) do
      if q.f.call then match_early(r, session, seq, q) end --@guard early-match
    end
  end
  local over = tonumber(f.left) == 0
  if f.state == RUN.WAITING and #fresh > 0 and (over or a.mode == MODE.EACH) then make_ready(r, 'settle') end --@guard carry-ready
  -- A pause that nothing can end is refused: it would wait for ever.
  if f.state == RUN.WAITING and over then error({ 'conflict', 'interrupts', f.state }) end --@guard nothing-open
  for _, q in ipairs(questions) do
    local i = load(SEG.interrupt, q.id)
    if i.f.state == SET.OPEN then ring_interrupt(i) end
  end
  return { 'accepted', f.state }
end)
