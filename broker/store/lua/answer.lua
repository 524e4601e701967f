-- answer: what one party says about one interrupt, named by its id or by its call. The first one counts; the others
-- are told who was first. One that comes before its question is kept. Safe to repeat with the same op.
-- KEYS  per item: verdict (of the interrupt, and of the early slot), run, calls, aliases, early, unknown, timers,
--       retention, history, counter, ready, pools, idle, dispositions, lists; per interrupt concerned: interrupt,
--       default, open, unseen
-- ARGV  per item: size, interrupt (empty: by call), session, run, sequence, call, op, kind of answer, mark (digest of
--       the verdict), verdict, by, seen digest, action digest (of what an edit lets run), slot of the early verdict,
--       not_after, longest window, what the history says of it (the kind, and the reason where there is one). A call
--       with a run and no sequence is one of that run's journal
-- Reply per item: accepted | replayed | parked until | unknown | conflict | invalid field allowed |
--       settled state at answer by op (of the one who was first)
--@use _runs
--@use _calls
--@use _interrupts
--@use _early
-- Only an answer is an op of a caller's; what superseded an interrupt carries the op of the answer to another one.
local function is_own(i, op)
  return i.f.op == op and (i.f.state == SET.RESOLVED or i.f.state == SET.CANCELLED)
end

local function again(i)
  local f = i.f
  local r = load(SEG.run, f.run)
  if r.f.state == RUN.READY and not r.f.ready_at then ring_ready(r) end
  return { 'replayed', i.id, f.state, f.at or '' }
end

local function decide(i, a)
  local f = i.f
  if is_own(i, a.op) then return again(i) end --@guard own-op
  if due(i) then expire(i) end --@guard deadline
  if f.state ~= SET.OPEN then return facts(i.f) end --@guard decided
  if a.receipt then return { 'unknown' } end --@guard unknown-receipt
  if not has(f.offers, a.kind, ',') then return { 'invalid', 'answer', f.offers or '' } end --@guard offers
  if a.seen ~= '' and a.seen ~= f.digest then return { 'invalid', 'seen', f.digest or '' } end --@guard seen
  put(SEG.verdict, i.id, a.bytes)
  f.verdict = i.id
  settle(i, a.kind == 'cancel' and SET.CANCELLED or SET.RESOLVED, { operation = 'answer', op = a.op, by = a.by,
    answer = a.kind, mark = a.mark, action = a.action, said = a.said })
  return { 'accepted', i.id, f.state, f.at }
end

-- One named with its pause: the interrupt that asked then, or an open one that was carried along to that pause.
local function in_sequence(a, found)
  local seq, field = tonumber(a.seq), 'r ' .. a.run .. ' ' .. a.seq .. ' ' .. a.call
  for _, carried in ipairs({ false, true }) do
    for _, i in ipairs(found) do
      local first, last = tonumber(i.f.asked or i.f.seq), tonumber(i.f.seq)
      local was_there = first == seq or (carried and i.f.state == SET.OPEN and first < seq and seq <= last)
      if i.f.run == a.run and was_there then return decide(i, a) end --@guard call-seq
    end
  end
  local r = load(SEG.run, a.run)
  if r.exists and r.f.session ~= a.session then return { 'unknown' } end --@guard call-session
  local closed = r.f.state == RUN.FINISHED or r.f.state == RUN.WITHDRAWN
  if closed or (r.exists and tonumber(r.f.seq) >= seq) then return { 'unknown' } end --@guard call-passed
  local taken = parked(a, field)
  if taken then return taken end --@guard slot
  return park_call(a, field, r.exists)
end

-- A call that its run's journal knows, named by its token: one call, whichever pause asks about it.
local function in_journal(a, found)
  local _, _, _, asked = call_record(a.run, a.call)
  for _, i in ipairs(found) do
    if i.id == asked and i.f.audience == 'completions' then return decide(i, a) end --@guard token-asked
  end
  local r = load(SEG.run, a.run)
  if not r.exists or r.f.state == RUN.FINISHED or r.f.state == RUN.WITHDRAWN then return { 'unknown' } end --@guard token-closed
  local field = 'j ' .. a.run .. ' ' .. a.call
  return parked(a, field) or park_call(a, field, true)
end

local function by_call(a)
  local known, found = words(get(map(SEG.aliases, a.session), 'call:' .. a.call)), {}
  for _, id in ipairs(known) do
    -- A tilde stands for an interrupt that was collected already; the call id has been seen all the same.
    if string.sub(id, 1, 1) ~= '~' then found[#found + 1] = load(SEG.interrupt, id) end
  end
  for _, i in ipairs(found) do
    if is_own(i, a.op) and (a.run == '' or i.f.run == a.run) then return again(i) end --@guard own-call
  end
  if a.run ~= '' then return a.seq ~= '' and in_sequence(a, found) or in_journal(a, found) end
  if #known > 1 then return { 'conflict', 'call', a.call } end --@guard sole-call
  if #known == 1 and #found == 0 then return { 'unknown' } end --@guard gone-call
  if #found == 1 then return decide(found[1], a) end
  return parked(a, 'c ' .. a.call) or park(a, 'c ' .. a.call)
end

local no_unknown

return each(function()
  local interrupt, session, run, seq, call, op, kind, mark, bytes, by, seen, action, slot, not_after, longest, said = args()
  local a = { interrupt = interrupt, session = session, run = run, seq = seq, call = call, op = op, kind = kind, mark = mark,
    bytes = bytes, by = by, seen = seen, action = action, slot = slot, said = said }
  if interrupt == '' then
    a.not_after, a.longest = tonumber(not_after), tonumber(longest)
    return by_call(a)
  end
  local i = load(SEG.interrupt, interrupt)
  if no_unknown == nil then no_unknown = redis_call('EXISTS', key(SEG.unknown)) == 0 end
  local told = interrupt .. ' ' .. op
  a.receipt = not no_unknown and tonumber(score(SEG.unknown, nil, told) or '0') > now
  if i.exists then return decide(i, a) end
  -- Told no once, always no: the same question may be asked again under the same id after the server lost it.
  write('ZREMRANGEBYSCORE', SEG.unknown, nil, '-inf', NOW)
  place(SEG.unknown, nil, told, int(now + KEEP_SETTLED))
  write('ZREMRANGEBYRANK', SEG.unknown, nil, 0, -10001)
  return { 'unknown' }
end)
