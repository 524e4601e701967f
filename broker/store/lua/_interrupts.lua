-- How an interrupt is rung for, and how it ends. It needs `_calls`.

local function ring_interrupt(i, again)
  local f, name = i.f, key(SEG.interrupts)
  need(name, 'stream')
  bells[#bells + 1] = { 'XADD', name, '*', 'for', f.audience, 'interrupt', i.id, 'run', f.run, 'session',
    f.session, 'queue', f.queue, 'agent', f.agent, 'build', f.build or '', 'kind', f.kind, 'tool', f.tool or '',
    'expiry', f.expiry or '', 'mode', f.mode or '', 'again', again or '', of = i }
  touch(i)
  place(SEG.unseen, f.audience, i.id, NOW)
end

local function late(f) return f.expiry ~= EXPIRY.WAIT and (tonumber(f.deadline) or now + 1) <= now end

-- Whether its job should have told by now that it still runs, and has not.
local function missed(f) return (tonumber(f.beat_by) or now + 1) <= now end

local function due(i)
  local f = i.f
  if f.state == SET.OPEN and f.missed == 'fail' and missed(f) then return true end --@guard beat-missed
  return f.state == SET.OPEN and late(f)
end

-- When something is to happen to an open interrupt by itself: at its deadline, or at the end of its heartbeat.
local function arm(i)
  local f = i.f
  local at, beat = f.expiry ~= EXPIRY.WAIT and tonumber(f.deadline), tonumber(f.beat_by)
  if beat and not (at and at < beat) then at = beat end
  if at then place(SEG.timers, nil, 'i ' .. i.id, int(at)) end
end

-- What somebody is told who comes to an interrupt that has ended.
local function facts(f) return { 'settled', f.state, f.at or '', f.answer or '', f.by or '', f.op or '', f.why or '' } end

-- Puts an open interrupt into the list of its queue, kind and tool, by its number, or takes it off (false). `lists` names
-- every list that holds something.
local function list(i, number)
  local f = i.f
  local name = f.queue .. ':' .. f.kind .. ':' .. (f.tool or '')
  place(SEG.open, name, i.id, number)
  if number then return place(SEG.lists, nil, name) end
  local lists = key(SEG.lists)
  need(lists, 'set')
  named[key(SEG.open, name)] = { lists, name }
end

-- What the history says of an end: the answer with its reason, where there was one, and why else.
local function told(how)
  local said = how.said ~= '' and how.said or how.answer
  return said and how.detail and how.detail .. ' ' .. said or said or how.detail
end

-- The one place where an interrupt ends. `how`: operation, op, by, and where somebody answered: answer, mark, action and
-- what is said of it; `quiet`: the caller decides itself what becomes of the run.
local function settle(i, state, how)
  local f, answer = i.f, how.answer
  move(i, how.operation, state)
  f.op, f.by, f.at, f.answer, f.mark, f.why = how.op, some(how.by), NOW, answer, some(how.mark), some(how.detail)
  list(i, false)
  place(SEG.unseen, f.audience, i.id, false)
  if f.deadline or f.beat then place(SEG.timers, nil, 'i ' .. i.id, false) end
  local goes_on = f.audience == 'approvals' and (answer == 'approve' or answer == 'edit')
  if goes_on then
    f.approved = f.action
    if answer == 'edit' then f.approved = some(how.action) end
  end
  if f.call and not goes_on then
    note_call(f.run, f.call, 'settle', CALL.RESOLVED, f.action or '-', i.id)
  end
  history(f.session, how.event or state, f.run, f.seq, i.id, state, how.by, how.op, how.mark, told(how))
  tell(state, f.run, f.session, i.id)
  publish(i.id, state)
  local r = load(SEG.run, f.run)
  if not r.exists then return end --@guard run-gone
  local quiet = how.quiet
  f = r.f
  f.left = sum(f.left, -1)
  f.fresh = f.fresh and f.fresh .. ' ' .. i.id or i.id
  touch(r)
  if f.mode == MODE.FIRST and not quiet then
    for _, id in ipairs(words(f.ids)) do
      local other = load(SEG.interrupt, id)
      if other.f.state == SET.OPEN then
        settle(other, SET.SUPERSEDED, { operation = 'supersede', op = how.op, by = how.by, quiet = true })
      end
    end
  end
  if f.state == RUN.WAITING and not quiet then
    if tonumber(f.left) == 0 or f.mode == MODE.EACH then make_ready(r, 'settle') end --@guard complete
  end
end

-- An answer that came before its question, or nil; a fault where the stored bytes are none of ours.
local function early_answer(early, field)
  local packed = get(early, field)
  if not packed then return nil end
  local said = unpacked(early.key, packed, 7)
  return { op = said[1], kind = said[2], mark = said[3], slot = said[4], action = said[5], seen = said[6], by = said[7],
    said = said[8] }
end

-- Ends an interrupt whose deadline has passed, as its policy says, or whose job has missed a heartbeat. Whoever meets it
-- does this before telling anybody.
local function expire(i)
  local f, op = i.f, 'expire 0'
  if not late(f) then return settle(i, SET.EXPIRED, { operation = 'expire', op = op, detail = 'heartbeat' }) end
  if f.expiry == EXPIRY.DEFAULT then
    local bytes = read('GET', key(SEG.default, i.id))
    if bytes then
      put(SEG.verdict, i.id, bytes)
      f.verdict = i.id
      settle(i, SET.RESOLVED, { operation = 'expire', event = 'default_answer', op = op, answer = f.default_kind,
        mark = f.default_mark, action = f.default_action })
      return
    end
  end
  settle(i, SET.EXPIRED, { operation = 'expire', op = op, detail = f.expiry })
end
