-- begin: what becomes of one journal entry (a step, or a call by its id) before it runs. Written ahead: after `run` the
-- entry is known to have been begun, whatever happens to the worker. Safe to repeat: the same lease is told `run` again,
-- and that counts as no further attempt.
-- KEYS  per item: run, calls, journal; interrupt of the call, where one was asked
-- ARGV  per item: size, run, fence, nonce, entry, digest of what was asked for, digest of what would run, gated (1),
--       long (1), interrupt (empty: none known), token for a long one, again (1: an entry that was begun under an
--       earlier lease may run again), most entries, most bytes,
--       place of an entry that has no name of its own (empty: it has one)
-- Reply per item: stale_lease | mismatch digest | stored bytes | settled interrupt | asked interrupt | ask |
--       open interrupt | wait bytes | changed digest | doubt attempt token | run attempt token interrupt | full entries bytes

--@use _runs
--@use _calls
-- What the question about a call says of it: nil where it may run. A call that was asked about stays gated. One whose
-- record has no digest is compared with its question.
local function gate(a, interrupt, digest)
  if interrupt == '' then return { 'ask' } end
  if a.interrupt ~= interrupt then return { 'asked', interrupt } end
  local i = load(SEG.interrupt, interrupt)
  local f = i.f
  if digest == '' and i.exists and (f.action or '-') ~= a.digest then return { 'mismatch', f.action or '-' } end --@guard question-digest
  if f.state == SET.OPEN then return { 'open', interrupt } end --@guard gate-open
  local agreed = f.answer == 'approve' or f.answer == 'edit'
  if f.state ~= SET.RESOLVED or not agreed then return { 'settled', interrupt } end --@guard gate-approved
  if f.approved ~= a.running then return { 'changed', f.approved or '' } end --@guard gate-digest
  return nil
end

-- How it ended: as the journal has it, or as its question did.
local function ended(a, interrupt, journal)
  local stored = read('HGET', journal, 'r ' .. a.entry)
  if stored then return { 'stored', stored } end
  -- Completed before it was asked about: the pause that asks finds the answer.
  if string.sub(interrupt, 1, 6) == 'early_' then return { 'wait', read('HGET', journal, 'h ' .. a.entry) or '' } end --@guard early-waits
  if interrupt ~= a.interrupt then return { 'asked', interrupt } end
  return { 'settled', interrupt }
end

return each(function()
  local a = {}
  a.run, a.fence, a.nonce, a.entry, a.digest, a.running, a.gated, a.long, a.interrupt, a.token, a.again, a.most, a.room, a.place = args()
  local r = load(SEG.run, a.run)
  local f = r.f
  if not holds(r, a.fence, a.nonce) then return { 'stale_lease', f.state or '' } end
  local state, attempt, digest, interrupt, fence = call_record(a.run, a.entry)
  if state ~= 'none' and digest ~= '' and digest ~= a.digest then return { 'mismatch', digest } end --@guard journal-digest
  local other = taken(a.run, a.place, a.entry)
  if other then return { 'mismatch', other } end
  local journal = key(SEG.journal, a.run)
  if state == CALL.RESOLVED then return ended(a, interrupt, journal) end --@guard journal-stored
  local begun = state == CALL.PENDING_RESULT or state == CALL.AWAITING_COMPLETION
  local gated = a.gated == '1' or state == CALL.AWAITING_CONFIRMATION
  if begun and gated and interrupt == '' then return { 'mismatch', 'begun without a question' } end --@guard gate-begun
  if not begun then
    local entries, bytes = tonumber(f.entries or '0'), tonumber(f.bytes or '0')
    if entries >= tonumber(a.most) or bytes >= tonumber(a.room) then return { 'full', int(entries), int(bytes) } end --@guard journal-room
    local stop = gated and gate(a, interrupt, digest)
    if stop and stop[1] == 'ask' then note_place(a.run, a.place, a.entry, a.digest) end
    if stop then return stop end
  end
  local handle = read('HGET', journal, 'h ' .. a.entry)
  if state == CALL.AWAITING_COMPLETION and handle then return { 'wait', handle } end
  -- What it may run by is read again before it runs, so whoever begins it has to know the question.
  if begun and interrupt ~= '' and interrupt ~= a.interrupt then return { 'asked', interrupt } end
  local token = read('HGET', journal, 't ' .. a.entry) or a.token
  if begun and fence == a.fence then return { 'run', attempt, token, interrupt } end
  if begun and a.again ~= '1' then return { 'doubt', attempt, token } end --@guard doubt
  local after = a.long == '1' and CALL.AWAITING_COMPLETION or CALL.PENDING_RESULT
  attempt = int(tonumber(attempt) + 1)
  if not note_call(a.run, a.entry, 'begin', after, a.digest, interrupt, attempt, a.fence) then return { 'mismatch', state } end
  note_place(a.run, a.place, a.entry, a.digest)
  if a.long == '1' then write('HSET', SEG.journal, a.run, 't ' .. a.entry, token) end
  return { 'run', attempt, token, interrupt }
end)
