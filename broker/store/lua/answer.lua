-- answer: what one party says about one interrupt, named by its id or by its call. The first one counts; the others
-- are told who was first. One that comes before its question is kept. Safe to repeat with the same op.
-- KEYS  per item: verdict (of the interrupt, and of the early slot), run, calls, aliases, early, unknown, timers,
--       retention, history, counter, ready, pools, bell, dispositions, open; per interrupt concerned: interrupt,
--       default, open_queue, open_tool, open_kind, unseen
-- ARGV  per item: size, interrupt (empty: by call), session, run, sequence, call, op, kind of answer, mark (digest of
--       the verdict), verdict, by, seen digest, action digest (empty: as asked), slot of the early verdict, not_after,
--       longest window
-- Reply per item: accepted | replayed | parked until | unknown | conflict | invalid field allowed |
--       settled state at answer by op (of the one who was first)
local function facts(i)
  local f = i.f
  return { 'settled', f.state, f.at or '', f.answer or '', f.by or '', f.op or '', f.why or '' }
end

local function decide(i, a)
  local f = i.f
  if f.op == a.op then --@guard own-op
    local r = load('run', f.run) --@guard own-op
    if r.f.state == RUN.READY and not r.f.ready_at then ring_ready(r) end --@guard own-op
    return { 'replayed', i.id, f.state, f.at or '' } --@guard own-op
  end --@guard own-op
  if due(i) then expire(i) end --@guard deadline
  if f.state ~= SET.OPEN then return facts(i) end --@guard decided
  if a.receipt then return { 'unknown' } end --@guard unknown-receipt
  if not has(f.offers, a.kind, ',') then return { 'invalid', 'answer', f.offers } end --@guard offers
  if a.seen ~= '' and a.seen ~= f.digest then return { 'invalid', 'seen', f.digest } end --@guard seen
  write('SET', 'verdict', i.id, a.bytes)
  set(i, 'verdict', i.id)
  settle(i, a.kind == 'cancel' and SET.CANCELLED or SET.RESOLVED, { operation = 'answer', op = a.op, by = a.by,
    answer = a.kind, mark = a.mark, action = a.action ~= '' and a.action or f.action })
  return { 'accepted', i.id, f.state, f.at }
end

local function park(a, field)
  local early = load('early', a.session)
  local packed = early.f[field]
  if packed then
    local op, kind, _, _, _, _, by = unpack(cmsgpack.unpack(packed))
    if op == a.op then return { 'replayed', '', 'parked', '' } end
    return { 'settled', 'parked', '', kind, by, op, '' } --@guard slot
  end
  if a.not_after <= now then return { 'unknown' } end --@guard park-in-time
  if a.not_after > now + a.longest then return { 'invalid', 'not_after', '' } end --@guard park-window
  set(early, field, cmsgpack.pack({ a.op, a.kind, a.mark, a.slot, a.action, a.seen, a.by }))
  write('SET', 'verdict', a.slot, a.bytes)
  write('ZADD', 'retention', nil, int(now + KEEP_PARKED), 'e ' .. a.slot .. ' ' .. a.session .. '\31' .. field)
  history(a.session, 'parked', { run = a.run, seq = a.seq, by = a.by, op = a.op, digest = a.mark, detail = a.call })
  return { 'parked', int(now + KEEP_PARKED) }
end

local function by_call(a)
  local aliases = load('aliases', a.session)
  local found = words(aliases.f['call:' .. a.call])
  if a.run == '' then
    for _, id in ipairs(found) do
      local i = load('interrupt', id)
      if i.f.op == a.op then return decide(i, a) end
    end
    if #found > 1 then return { 'conflict', 'call', a.call } end --@guard sole-call
    if #found == 1 then return decide(load('interrupt', found[1]), a) end
    return park(a, 'c ' .. a.call)
  end
  for _, id in ipairs(found) do
    local i = load('interrupt', id)
    if i.f.run == a.run and i.f.seq == a.seq then return decide(i, a) end --@guard call-seq
  end
  local r = load('run', a.run)
  local closed = r.f.state == RUN.FINISHED or r.f.state == RUN.WITHDRAWN
  if closed or (r.exists and tonumber(r.f.seq) >= tonumber(a.seq)) then return { 'unknown' } end --@guard call-passed
  local noted = r.exists and load('calls', a.run).f[a.call]
  local was = noted and string.match(noted, '^(%S+)')
  if was == CALL.RESOLVED then return { 'settled', SET.RESOLVED, '', '', '', '', '' } end
  local reply = park(a, 'r ' .. a.run .. ' ' .. a.seq .. ' ' .. a.call)
  if reply[1] == 'parked' and was == CALL.AWAITING_COMPLETION then
    note_call(a.run, a.call, 'settle', CALL.RESOLVED, '-', a.slot)
  end
  return reply
end

return each(function()
  local a = {}
  for _, name in ipairs({ 'interrupt', 'session', 'run', 'seq', 'call', 'op', 'kind', 'mark', 'bytes', 'by', 'seen', 'action',
    'slot', 'not_after', 'longest' }) do a[name] = arg() end
  a.not_after, a.longest = tonumber(a.not_after), tonumber(a.longest)
  if a.interrupt == '' then return by_call(a) end
  local i = load('interrupt', a.interrupt)
  local mark = a.interrupt .. ' ' .. a.op
  local told = tonumber(redis.call('ZSCORE', key('unknown', nil, 'zset'), mark) or '0')
  a.receipt = told > now
  if i.exists then return decide(i, a) end
  -- Told no once, always no: the same question may be asked again under the same id after the server lost it.
  write('ZADD', 'unknown', nil, int(now + a.longest), mark)
  write('ZREMRANGEBYRANK', 'unknown', nil, 0, -10001)
  return { 'unknown' }
end)
