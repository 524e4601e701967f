-- What answer does with one that comes before its question: it is kept, and found when the question is asked.

-- What the one who holds the place already is told, or another one; nil where it is free.
local function parked(a, field)
  local said = early_answer(map(SEG.early, a.session), field)
  if not said then return nil end
  if said.op == a.op then return { 'replayed', '', 'parked', '' } end
  return { 'settled', 'parked', '', said.kind, said.by, said.op, '' }
end

local function park(a, field)
  if a.not_after <= now then return { 'unknown' } end --@guard park-in-time
  if a.not_after > now + a.longest then return { 'invalid', 'not_after', '' } end --@guard park-window
  set(map(SEG.early, a.session), field, cmsgpack.pack({ a.op, a.kind, a.mark, a.slot, a.action, a.seen, a.by, a.said }))
  put(SEG.verdict, a.slot, a.bytes)
  place(SEG.retention, nil, 'e ' .. a.slot .. ' ' .. a.session .. '\31' .. field, int(now + KEEP_PARKED))
  history(a.session, 'parked', a.run, a.seq, '', '', a.by, a.op, a.mark, a.call)
  return { 'parked', int(now + KEEP_PARKED) }
end

-- Keeps what came before its question; a call that was begun is completed by it, and never starts again.
local function park_call(a, field, known)
  local was, digest, _
  if known then was, _, digest = call_record(a.run, a.call) end
  if was == CALL.RESOLVED then return { 'settled', SET.RESOLVED, '', '', '', '', '' } end --@guard call-resolved
  local reply = park(a, field)
  if reply[1] == 'parked' and was == CALL.AWAITING_COMPLETION then
    note_call(a.run, a.call, 'settle', CALL.RESOLVED, digest, a.slot)
  end
  return reply
end
