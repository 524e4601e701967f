-- What suspend does to interrupts: asks new ones, matches answers that came early, carries the old ones along.

local function add(r, session, seq, q)
  local f = r.f
  local i = load('interrupt', q.id)
  if i.exists then error({ 'conflict', 'interrupt', q.id }) end --@guard new-interrupt
  local n = q.fields
  i.f = n
  local deadline = n.deadline or ''
  if string.sub(deadline, 1, 1) == '+' then deadline = int(now + tonumber(deadline)) end
  if deadline ~= '' and tonumber(deadline) <= now then error({ 'invalid', 'expires_at' }) end --@guard past-deadline
  n.run, n.session, n.seq, n.mode, n.queue, n.agent, n.build = r.id, session, seq, f.mode, f.queue, f.agent, f.build
  n.opened = NOW
  set(i, 'deadline', deadline)
  move(i, 'suspend', SET.OPEN)
  local number = int(next_number())
  set(i, 'number', number)
  write('SET', 'question', q.id, q.record)
  if q.default ~= '' then write('SET', 'default', q.id, q.default) end
  write('ZADD', 'open', nil, number, q.id)
  write('ZADD', 'open_queue', f.queue, number, q.id)
  write('ZADD', 'open_kind', n.kind, number, q.id)
  if n.tool then write('ZADD', 'open_tool', n.tool, number, q.id) end
  if deadline ~= '' and n.expiry ~= EXPIRY.WAIT then write('ZADD', 'timers', nil, deadline, 'i ' .. q.id) end
  if n.call then
    local aliases, field = map('aliases', session), 'call:' .. n.call
    set(aliases, field, (aliases.f[field] and aliases.f[field] .. ' ' or '') .. q.id)
    local awaiting = n.audience == 'completions' and CALL.AWAITING_COMPLETION or CALL.AWAITING_CONFIRMATION
    note_call(r.id, n.call, 'suspend', awaiting, n.action or '-', q.id)
  end
  bump(r, 'left', 1)
  history(session, 'suspended', { run = r.id, seq = seq, interrupt = q.id, state = SET.OPEN, digest = n.digest,
    op = f.suspend_op, detail = n.label or n.call and n.kind .. ' ' .. n.call or n.kind })
end

-- An answer that came before its question: by (run, sequence, call), by the token of a call of the journal, or by call
-- alone while no other had that call id.
-- `q.early` says what the caller made of it: `mark`, `mark=digest` of what an edit lets run, or `!mark` (does not fit).
local function match_early(r, session, seq, q)
  if redis_call('EXISTS', key('early', session)) == 0 then return end
  local early, aliases, i = map('early', session), map('aliases', session), load('interrupt', q.id)
  local call = i.f.call
  for _, field in ipairs({ 'r ' .. r.id .. ' ' .. seq .. ' ' .. call, 'j ' .. r.id .. ' ' .. call, 'c ' .. call }) do
    local a = early_answer(early, field)
    local named = string.sub(field, 1, 1) ~= 'c'
    if not named and aliases.f['call:' .. call] ~= q.id then a = nil end --@guard early-sole
    if a then
      local looked, bad = q.early == '*' or has(q.early, a.mark, ','), has(q.early, '!' .. a.mark, ',')
      local action = string.match(',' .. q.early .. ',', ',' .. a.mark .. '=([^,]*),')
      if not (looked or bad or action) then error({ 'recheck', q.id }) end --@guard early-schema
      local fits = has(i.f.offers, a.kind, ',') and not bad and (a.seen == '' or a.seen == i.f.digest)
      set(early, field, nil)
      if fits and i.f.state == SET.OPEN then
        write('ZREM', 'retention', nil, 'e ' .. a.slot .. ' ' .. session .. '\31' .. field)
        set(i, 'verdict', a.slot)
        settle(i, a.kind == 'cancel' and SET.CANCELLED or SET.RESOLVED, { operation = 'answer', op = a.op, by = a.by,
          answer = a.kind, mark = a.mark, action = action or a.action, said = a.said, detail = 'early' })
      else
        -- Its verdict goes when its time is over: who suspends may not delete one.
        history(session, 'unmatched', { run = r.id, seq = seq, interrupt = q.id, by = a.by, op = a.op, digest = a.mark })
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

-- Ends what is due before anything is decided over it. A default answer is a verdict, which a worker may not write: its
-- interrupt stays as it is until somebody comes who may.
local function expire_due(r)
  for _, id in ipairs(words(r.f.ids)) do
    local i = load('interrupt', id)
    if due(i) and i.f.expiry ~= EXPIRY.DEFAULT then expire(i) end --@guard suspend-due
  end
end

-- The old suspension's interrupts: open ones that are kept and (mode each) news nobody has read go along, others end.
local function carry(r, seq, mode, keep, shown, op, by)
  local ids, fresh = {}, {}
  for _, id in ipairs(words(r.f.ids)) do
    local i = load('interrupt', id)
    local unread = false
    if r.f.mode == MODE.EACH and has(r.f.fresh, id, ' ') and not has(shown, id, ' ') then unread = true end --@guard carry-unread
    if i.f.state == SET.OPEN and not keep[id] then
      settle(i, SET.SUPERSEDED, { operation = 'supersede', op = op, by = by, quiet = true })
    end
    if i.f.state == SET.OPEN or unread then
      ids[#ids + 1] = id
      set(i, 'asked', i.f.asked or i.f.seq)
      set(i, 'seq', seq)
      set(i, 'mode', mode)
      set(i, 'build', r.f.build) --@guard carry-build
      if unread then fresh[#fresh + 1] = id end
    else
      set(i, 'spent', NOW)
      write('ZADD', 'retention', nil, int(now + KEEP_SETTLED), 'i ' .. id)
    end
  end
  return ids, fresh
end
