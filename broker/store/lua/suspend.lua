-- suspend: one pause of one run: its state, its interrupts, mark, indexes, timers and bells in one step. From a lease,
-- in place of a pause (`replace`), or as the first thing known of a run. Answers that came early are matched here.
-- Safe to repeat: the same point gets `replayed` and rings again for what is open.
-- KEYS  per item: run, state, input, calls, active, early, aliases, timers, retention, history, counter, ready, pools,
--       bell, interrupts, dispositions, open, and per interrupt (old and new): interrupt, question, default, unseen,
--       open_queue, open_tool, open_kind
-- ARGV  per item: size, run, session, queue, agent, build, priority, op, digest, seq, mode, replace, fence, nonce,
--       not_after, longest window, by, input, state, number of kept ids, the ids, number of interrupts, and for each:
--       id, kind, tool, call, action digest, content digest, deadline (empty: never, +n: n from now, n: absolute),
--       expiry, audience, offers, labels, early (digests of early verdicts that were looked at, see _pause; *: none
--       needs it), default answer, its kind, mark and action digest, record
-- Reply per item: accepted state | replayed state | conflict | stale_lease | unknown | invalid | recheck
--@use _pause
local function arguments()
  local a = {}
  for _, name in ipairs({ 'run', 'session', 'queue', 'agent', 'build', 'priority', 'op', 'digest', 'seq', 'mode', 'replace',
    'fence', 'nonce', 'not_after', 'longest', 'by', 'input', 'state' }) do a[name] = arg() end
  a.keep, a.questions, a.not_after, a.longest = {}, {}, tonumber(a.not_after), tonumber(a.longest)
  for _ = 1, tonumber(arg()) do a.keep[arg()] = true end
  for n = 1, tonumber(arg()) do
    local q = {}
    for _, name in ipairs({ 'id', 'kind', 'tool', 'call', 'action', 'digest', 'deadline', 'expiry', 'audience', 'offers',
      'labels', 'early', 'default', 'default_kind', 'default_mark', 'default_action', 'record' }) do q[name] = arg() end
    a.questions[n] = q
  end
  return a
end

-- Whether this pause may be made, and as which operation of the table. Returns the operation, or nil and the refusal.
local function permit(r, a)
  local f = r.f
  if not r.exists then
    if a.nonce ~= '' then return nil, { 'stale_lease', '' } end
    if a.seq ~= '1' then return nil, { 'conflict', 'run', '' } end --@guard suspend-first
    if a.not_after <= now then return nil, { 'unknown' } end --@guard suspend-in-time
    if a.not_after > now + a.longest then return nil, { 'invalid', 'not_after' } end --@guard suspend-window
    for field, value in pairs({ session = a.session, queue = a.queue, agent = a.agent, build = a.build,
      priority = a.priority, fence = '0', tries = '0', left = '0', start_op = a.op, created = int(now) }) do
      set(r, field, value)
    end
    write('SET', 'input', r.id, a.input)
    return 'suspend'
  end
  if f.session ~= a.session then return nil, { 'conflict', 'session', f.state } end --@guard suspend-session
  if a.nonce ~= '' then
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
  local f = r.f
  if r.exists and f.suspend_op == a.op and f.seq == a.seq then
    if f.suspend_digest ~= a.digest then return { 'conflict', 'digest', f.state } end --@guard point-digest
    ring_all(r)
    return { 'replayed', f.state }
  end
  local shown = f.shown
  local operation, refusal = permit(r, a)
  if not operation then return refusal end
  local ids, fresh = carry(r, a.seq, a.mode, a.keep, shown, a.op, a.by)
  if f.state == RUN.LEASED then unlease(r) end
  move(r, operation, RUN.WAITING)
  for field, value in pairs({ seq = a.seq, suspend_op = a.op, suspend_digest = a.digest, mode = a.mode,
    suspended = int(now), tries = '0' }) do set(r, field, value) end
  for _, q in ipairs(a.questions) do ids[#ids + 1] = q.id end
  set(r, 'ids', table.concat(ids, ' '))
  set(r, 'fresh', table.concat(fresh, ' '))
  write('SET', 'state', a.run, a.state)
  write('HSET', 'active', a.session, a.run, a.seq)
  for _, q in ipairs(a.questions) do add(r, a.session, a.seq, q) end
  -- Each question leaves an entry; a pause that only keeps old ones leaves its own.
  if #a.questions == 0 then history(a.session, 'suspended', { run = a.run, seq = a.seq, op = a.op, detail = 'kept' }) end
  for _, q in ipairs(a.questions) do
    if q.call ~= '' then match_early(r, a.session, a.seq, q) end --@guard early-match
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
