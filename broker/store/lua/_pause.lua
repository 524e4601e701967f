-- What suspend does to interrupts: asks new ones, matches answers that came early, carries the old ones along.

local function add(r, session, seq, q)
  local i, f = load(SEG.interrupt, q.id), r.f
  if i.exists then error({ 'conflict', 'interrupt', q.id }) end --@guard new-interrupt
  local mode, queue, agent, build, op = f.mode, f.queue, f.agent, f.build, f.suspend_op
  f.left = sum(f.left, 1)
  f = q.f
  i.f = f
  local deadline = f.deadline
  if deadline then
    if string.sub(deadline, 1, 1) == '+' then deadline = int(now + tonumber(deadline)) end
    if tonumber(deadline) <= now then error({ 'invalid', 'expires_at' }) end --@guard past-deadline
    f.deadline = deadline
  end
  if f.beat then f.beat_by = int(now + tonumber(f.beat)) end
  arm(i)
  f.run, f.session, f.seq, f.mode, f.queue, f.agent, f.build = r.id, session, seq, mode, queue, agent, build
  f.opened, f.number = NOW, int(next_number())
  move(i, 'suspend', SET.OPEN)
  put(SEG.question, q.id, q.record)
  if q.default ~= '' then put(SEG.default, q.id, q.default) end
  list(i, f.number)
  local call = f.call
  if call then
    local aliases, field = map(SEG.aliases, session), 'call:' .. call
    local before = get(aliases, field)
    set(aliases, field, before and before .. ' ' .. q.id or q.id)
    local awaiting = f.audience == 'completions' and CALL.AWAITING_COMPLETION or CALL.AWAITING_CONFIRMATION
    note_call(r.id, call, 'suspend', awaiting, f.action or '-', q.id)
  end
  history(session, 'suspended', r.id, seq, q.id, SET.OPEN, '', op, f.digest,
    f.label or call and f.kind .. ' ' .. call or f.kind)
end

-- An answer that came before its question: by (run, sequence, call), by the token of a call of the journal, or by call
-- alone while no other had that call id.
-- `q.early` says what the caller made of it: `mark`, `mark=digest` of what an edit lets run, or `!mark` (does not fit).
local function match_early(r, session, seq, q)
  local early, aliases, i = map(SEG.early, session), map(SEG.aliases, session), load(SEG.interrupt, q.id)
  local f = i.f
  local call = f.call
  for _, field in ipairs({ 'r ' .. r.id .. ' ' .. seq .. ' ' .. call, 'j ' .. r.id .. ' ' .. call, 'c ' .. call }) do
    local a = early_answer(early, field)
    local named = string.sub(field, 1, 1) ~= 'c'
    if not named and get(aliases, 'call:' .. call) ~= q.id then a = nil end --@guard early-sole
    if a then
      local looked, bad = q.early == '*' or has(q.early, a.mark, ','), has(q.early, '!' .. a.mark, ',')
      local action = string.match(',' .. q.early .. ',', ',' .. a.mark .. '=([^,]*),')
      if not (looked or bad or action) then error({ 'recheck', q.id }) end --@guard early-schema
      local fits = has(f.offers, a.kind, ',') and not bad and (a.seen == '' or a.seen == f.digest)
      set(early, field, '')
      if fits and f.state == SET.OPEN then
        place(SEG.retention, nil, 'e ' .. a.slot .. ' ' .. session .. '\31' .. field, false)
        f.verdict = a.slot
        settle(i, a.kind == 'cancel' and SET.CANCELLED or SET.RESOLVED, { operation = 'answer', op = a.op, by = a.by,
          answer = a.kind, mark = a.mark, action = action or a.action, said = a.said, detail = 'early' })
      else
        -- Its verdict goes when its time is over: who suspends may not delete one.
        history(session, 'unmatched', r.id, seq, q.id, '', a.by, a.op, a.mark)
        tell('unmatched', r.id, session, q.id)
      end
    end
  end
end

local function ring_all(r)
  local f = r.f
  if f.state == RUN.READY and not f.ready_at then ring_ready(r) end
  for _, id in ipairs(words(f.ids)) do
    local i = load(SEG.interrupt, id)
    if i.f.state == SET.OPEN then ring_interrupt(i) end
  end
end

-- Ends what is due before anything is decided over it. A default answer is a verdict, which a worker may not write: its
-- interrupt stays as it is until somebody comes who may.
local function expire_due(r)
  for _, id in ipairs(words(r.f.ids)) do
    local i = load(SEG.interrupt, id)
    if due(i) and i.f.expiry ~= EXPIRY.DEFAULT then expire(i) end --@guard suspend-due
  end
end

-- The old suspension's interrupts: open ones that are kept and (mode each) news nobody has read go along, others end.
local function carry(r, seq, mode, keep, shown, op, by)
  local ids, fresh = {}, {}
  for _, id in ipairs(words(r.f.ids)) do
    local i = load(SEG.interrupt, id)
    local f = i.f
    local unread = false
    if r.f.mode == MODE.EACH and has(r.f.fresh, id, ' ') and not has(shown, id, ' ') then unread = true end --@guard carry-unread
    if f.state == SET.OPEN and not has(keep, id, ' ') then
      settle(i, SET.SUPERSEDED, { operation = 'supersede', op = op, by = by, quiet = true })
    end
    if f.state == SET.OPEN or unread then
      ids[#ids + 1] = id
      f.asked = f.asked or f.seq
      f.seq, f.mode = seq, mode
      f.build = r.f.build --@guard carry-build
      if unread then fresh[#fresh + 1] = id end
    else
      f.spent = NOW
      place(SEG.retention, nil, 'i ' .. id, int(now + KEEP_SETTLED))
    end
    touch(i)
  end
  return ids, fresh
end
