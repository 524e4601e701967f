-- How an interrupt is rung for, and how it ends. It needs `_calls`.

local function ring_interrupt(i)
  local f = i.f
  local name = key('interrupts')
  need('interrupts', name, 'stream')
  bells[#bells + 1] = { 'XADD', name, '*', 'for', f.audience, 'interrupt', i.id, 'run', f.run, 'session',
    f.session, 'queue', f.queue, 'agent', f.agent, 'build', f.build or '', 'kind', f.kind, 'tool', f.tool or '',
    'expiry', f.expiry or '', 'mode', f.mode or '', of = i }
  write('ZADD', 'unseen', f.audience, NOW, i.id)
end

local function due(i)
  return i.f.state == SET.OPEN and i.f.expiry ~= EXPIRY.WAIT and (tonumber(i.f.deadline) or now + 1) <= now
end

-- What the history says of an end: the answer with its reason, where there was one, and why else.
local function told(how)
  local said = how.said ~= '' and how.said or how.answer
  return said and how.detail and how.detail .. ' ' .. said or said or how.detail
end

-- The one place where an interrupt ends. `how`: operation, op, by, and where somebody answered: answer, mark, action and
-- what is said of it; `quiet`: the caller decides itself what becomes of the run.
local function settle(i, state, how)
  local f = i.f
  move(i, how.operation, state)
  set(i, 'op', how.op)
  set(i, 'by', how.by or '')
  set(i, 'at', NOW)
  set(i, 'answer', how.answer or '')
  set(i, 'mark', how.mark or '')
  set(i, 'why', how.detail or '')
  for _, index in ipairs({ { 'open' }, { 'open_queue', f.queue }, { 'open_kind', f.kind }, { 'open_tool', f.tool } }) do
    if index[1] == 'open' or (index[2] or '') ~= '' then write('ZREM', index[1], index[2], i.id) end
  end
  write('ZREM', 'unseen', f.audience, i.id)
  write('ZREM', 'timers', nil, 'i ' .. i.id)
  local goes_on = f.audience == 'approvals' and (how.answer == 'approve' or how.answer == 'edit')
  if goes_on then set(i, 'approved', how.answer == 'edit' and how.action or f.action) end
  if (f.call or '') ~= '' and not goes_on then
    note_call(f.run, f.call, 'settle', CALL.RESOLVED, f.action or '-', i.id)
  end
  history(f.session, how.event or state, { run = f.run, seq = f.seq, interrupt = i.id, state = state, by = how.by, op = how.op,
    digest = how.mark, detail = told(how) })
  write('XADD', 'dispositions', nil, '*', 'event', state, 'interrupt', i.id, 'run', f.run, 'session', f.session)
  pending[#pending + 1] = { PUBLISH, TAG .. SEG.settled .. i.id, state }
  local r = load('run', f.run)
  if not r.exists then return end --@guard run-gone
  bump(r, 'left', -1)
  set(r, 'fresh', (r.f.fresh and r.f.fresh .. ' ' or '') .. i.id)
  if r.f.mode == MODE.FIRST and not how.quiet then
    for _, id in ipairs(words(r.f.ids)) do
      local other = load('interrupt', id)
      if other.f.state == SET.OPEN then
        settle(other, SET.SUPERSEDED, { operation = 'supersede', op = how.op, by = how.by, quiet = true })
      end
    end
  end
  if r.f.state == RUN.WAITING and not how.quiet then
    if tonumber(r.f.left) == 0 or r.f.mode == MODE.EACH then make_ready(r, 'settle') end --@guard complete
  end
end

-- An answer that came before its question, or nil; a fault where the stored bytes are none of ours.
local function early_answer(early, field)
  local packed = early.f[field]
  if not packed then return nil end
  local said = unpacked(early.key, packed, 7)
  return { op = said[1], kind = said[2], mark = said[3], slot = said[4], action = said[5], seen = said[6], by = said[7],
    said = said[8] }
end

-- Ends an interrupt whose deadline has passed, as its policy says. Whoever meets it does this before telling anybody.
local function expire(i)
  local f = i.f
  local op = 'expire ' .. (f.moved or '0')
  if f.expiry == EXPIRY.DEFAULT then
    local bytes = read('GET', key('default', i.id))
    if bytes then
      write('SET', 'verdict', i.id, bytes)
      set(i, 'verdict', i.id)
      settle(i, SET.RESOLVED, { operation = 'expire', event = 'default_answer', op = op, answer = f.default_kind,
        mark = f.default_mark, action = f.default_action })
      return
    end
  end
  settle(i, SET.EXPIRED, { operation = 'expire', op = op, detail = f.expiry })
end
