-- suspend: one pause of one run: its state, its interrupts, mark, indexes, timers and bells in one step. From a lease,
-- in place of a pause (`replace`), or as the first thing known of a run. Answers that came early are matched here.
-- Safe to repeat: the same point gets `replayed` and rings again for what is open.
-- KEYS  per item: run, state, input, calls, active, early, aliases, timers, retention, history, counter, ready, pools,
--       bell, interrupts, dispositions, open, and per interrupt (old and new): interrupt, question, default, unseen,
--       open_queue, open_tool, open_kind
-- ARGV  per item: size, run, session, queue, agent, build, priority, op, digest, seq, mode, replace, fence, nonce,
--       not_after, longest window, by, input, state, number of kept ids, the ids, number of interrupts, and for each:
--       id, kind, tool, call, action digest, content digest, deadline (empty: never, +n: n from now, n: absolute),
--       expiry, audience, offers, labels, early (digests of early verdicts that passed the schema, !digest for those
--       that did not, *: no schema),
--       default answer, its kind, mark and action digest, record
-- Reply per item: accepted state | replayed state | conflict | stale_lease | unknown | invalid | recheck
local function add(r, session, seq, q)
  local f = r.f
  local i = load('interrupt', q.id)
  if i.exists then return { 'conflict', 'interrupt', q.id } end --@guard new-interrupt
  local deadline = q.deadline
  if string.sub(deadline, 1, 1) == '+' then deadline = int(now + tonumber(deadline)) end
  if deadline ~= '' and tonumber(deadline) <= now then return { 'invalid', 'expires_at' } end --@guard past-deadline
  i.f.state = nil
  move(i, 'suspend', SET.OPEN)
  for field, value in pairs({ run = r.id, session = session, seq = seq, queue = f.queue, agent = f.agent, build = f.build,
    mode = f.mode, kind = q.kind, tool = q.tool, call = q.call, action = q.action, digest = q.digest, deadline = deadline,
    expiry = q.expiry, audience = q.audience, offers = q.offers, labels = q.labels, opened = int(now),
    default_kind = q.default_kind, default_mark = q.default_mark, default_action = q.default_action }) do
    set(i, field, value)
  end
  local number = int(next_number())
  set(i, 'number', number)
  write('SET', 'question', q.id, q.record)
  if q.default ~= '' then write('SET', 'default', q.id, q.default) end
  write('ZADD', 'open', nil, number, q.id)
  write('ZADD', 'open_queue', f.queue, number, q.id)
  write('ZADD', 'open_kind', q.kind, number, q.id)
  if q.tool ~= '' then write('ZADD', 'open_tool', q.tool, number, q.id) end
  if deadline ~= '' and q.expiry ~= EXPIRY.WAIT then write('ZADD', 'timers', nil, deadline, 'i ' .. q.id) end
  if q.call ~= '' then
    local aliases = load('aliases', session)
    set(aliases, 'call:' .. q.call, (aliases.f['call:' .. q.call] and aliases.f['call:' .. q.call] .. ' ' or '') .. q.id)
    local awaiting = q.audience == 'completions' and CALL.AWAITING_COMPLETION or CALL.AWAITING_CONFIRMATION
    note_call(r.id, q.call, 'suspend', awaiting, q.action == '' and '-' or q.action, q.id)
  end
  bump(r, 'left', 1)
  history(session, 'suspended', { run = r.id, seq = seq, interrupt = q.id, state = SET.OPEN, digest = q.digest,
    op = f.suspend_op, detail = q.kind })
end

-- An answer that came before its question: by (run, sequence, call), or by call alone while no other had that call id.
local function match_early(r, session, seq, q)
  local early = load('early', session)
  local aliases = load('aliases', session)
  for _, field in ipairs({ 'r ' .. r.id .. ' ' .. seq .. ' ' .. q.call, 'c ' .. q.call }) do
    local packed = early.f[field]
    local sole = string.sub(field, 1, 1) == 'r' or aliases.f['call:' .. q.call] == q.id
    if packed and sole then
      local op, kind, mark, vid, action, seen, by = unpack(cmsgpack.unpack(packed))
      local i = load('interrupt', q.id)
      local bad = has(q.early, '!' .. mark, ',')
      if q.early ~= '*' and not bad and not has(q.early, mark, ',') then error({ 'recheck', q.id }) end
      local fits = has(i.f.offers, kind, ',') and (seen == '' or seen == i.f.digest) and not bad
      set(early, field, nil)
      write('ZREM', 'retention', nil, 'e ' .. vid .. ' ' .. session .. '\31' .. field)
      if fits and i.f.state == SET.OPEN then
        set(i, 'verdict', vid)
        settle(i, kind == 'cancel' and SET.CANCELLED or SET.RESOLVED, { operation = 'answer', op = op, by = by, answer = kind,
          mark = mark, action = action ~= '' and action or i.f.action, detail = 'early' })
      else
        history(session, 'unmatched', { run = r.id, seq = seq, interrupt = q.id, by = by, op = op, digest = mark })
        write('XADD', 'dispositions', nil, '*', 'event', 'unmatched', 'interrupt', q.id, 'run', r.id, 'session', session)
      end
    end
  end
end

local function ring_all(r)
  if r.f.state == RUN.READY and not r.f.ready_at then ring_ready(r) end
  for _, id in ipairs(words(r.f.ids)) do
    local i = load('interrupt', id)
    if i.f.state == SET.OPEN then ring_interrupt(i) end
  end
end

-- The old suspension's interrupts: open ones that are kept and (mode each) news nobody has read go along, others end.
local function carry(r, seq, keep, shown, op, by)
  local ids, fresh = {}, {}
  for _, id in ipairs(words(r.f.ids)) do
    local i = load('interrupt', id)
    local unread = r.f.mode == MODE.EACH and has(r.f.fresh, id, ' ') and not has(shown, id, ' ')
    if i.f.state == SET.OPEN and not keep[id] then
      settle(i, SET.SUPERSEDED, { operation = 'supersede', op = op, by = by, quiet = true })
    end
    if i.f.state == SET.OPEN or unread then
      ids[#ids + 1] = id
      set(i, 'seq', seq)
      if unread then fresh[#fresh + 1] = id end
    else
      set(i, 'spent', int(now))
      write('ZADD', 'retention', nil, int(now + KEEP_SETTLED), 'i ' .. id)
    end
  end
  return ids, fresh
end

return each(function()
  local id, session, queue, agent, build, priority = arg(), arg(), arg(), arg(), arg(), arg()
  local op, digest, seq, mode, replace, fence, nonce = arg(), arg(), arg(), arg(), arg(), arg(), arg()
  local not_after, longest, by, input, state = tonumber(arg()), tonumber(arg()), arg(), arg(), arg()
  local keep, questions = {}, {}
  for _ = 1, tonumber(arg()) do keep[arg()] = true end
  for n = 1, tonumber(arg()) do
    local q = {}
    for _, name in ipairs({ 'id', 'kind', 'tool', 'call', 'action', 'digest', 'deadline', 'expiry', 'audience', 'offers',
      'labels', 'early', 'default', 'default_kind', 'default_mark', 'default_action', 'record' }) do q[name] = arg() end
    questions[n] = q
  end
  local r = load('run', id)
  local f = r.f
  if r.exists and f.suspend_op == op and f.seq == seq then
    if f.suspend_digest ~= digest then return { 'conflict', 'digest', f.state } end --@guard point-digest
    ring_all(r)
    return { 'replayed', f.state }
  end
  local ids, fresh, operation, shown = {}, {}, 'suspend', f.shown
  if not r.exists then
    if nonce ~= '' or seq ~= '1' then return { nonce ~= '' and 'stale_lease' or 'conflict', 'run', '' } end
    if not_after <= now then return { 'unknown' } end --@guard suspend-in-time
    if not_after > now + longest then return { 'invalid', 'not_after' } end --@guard suspend-window
    for field, value in pairs({ session = session, queue = queue, agent = agent, build = build, priority = priority,
      fence = '0', tries = '0', left = '0', start_op = op, created = int(now) }) do set(r, field, value) end
    write('SET', 'input', id, input)
  elseif nonce ~= '' then
    if not holds(r, fence, nonce) then return { 'stale_lease', f.state } end
    if tonumber(seq) ~= tonumber(f.seq) + 1 then return { 'conflict', 'sequence', f.seq } end --@guard suspend-seq
    unlease(r)
  else
    if not (replace == '1' and f.state == RUN.WAITING) then return { 'conflict', 'run', f.state } end --@guard replace
    if tonumber(seq) ~= tonumber(f.seq) + 1 then return { 'conflict', 'sequence', f.seq } end --@guard replace-seq
    operation = 'replace'
  end
  if r.exists and f.state then ids, fresh = carry(r, seq, keep, shown, op, by) end
  move(r, operation, RUN.WAITING)
  for field, value in pairs({ seq = seq, suspend_op = op, suspend_digest = digest, mode = mode, suspended = int(now),
    tries = '0' }) do set(r, field, value) end
  for _, q in ipairs(questions) do ids[#ids + 1] = q.id end
  set(r, 'ids', table.concat(ids, ' '))
  set(r, 'fresh', table.concat(fresh, ' '))
  write('SET', 'state', id, state)
  write('HSET', 'active', session, id, seq)
  for _, q in ipairs(questions) do
    local refused = add(r, session, seq, q)
    if refused then error(refused) end
  end
  for _, q in ipairs(questions) do
    if q.call ~= '' then match_early(r, session, seq, q) end --@guard early-match
  end
  if f.state == RUN.WAITING and #fresh > 0 then make_ready(r, 'settle') end
  for _, q in ipairs(questions) do
    local i = load('interrupt', q.id)
    if i.f.state == SET.OPEN then ring_interrupt(i) end
  end
  return { 'accepted', f.state }
end)
