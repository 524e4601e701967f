-- end: the result of an entry that was begun; from then on it is handed out and never runs again. A result that is
-- recorded already stays as it is, whoever comes second, and so does a completion that came before its question. Safe
-- to repeat.
-- KEYS  per item: run, calls, journal
-- ARGV  per item: size, run, fence, nonce, entry, result, digest of an entry that cannot be begun (empty: it was begun),
--       place of such an entry that has no name of its own
-- Reply per item: stale_lease | accepted entries bytes | replayed bytes | completed | mismatch digest | conflict
--@use _runs
--@use _calls
return each(function()
  local id, fence, nonce, entry, result, refused, at = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not holds(r, fence, nonce) then return { 'stale_lease', f.state or '' } end
  local state, attempt, digest, interrupt = call_record(id, entry)
  local stored = read('HGET', key(SEG.journal, id), 'r ' .. entry)
  if stored then return { 'replayed', stored } end --@guard end-final
  if state == CALL.RESOLVED and string.sub(interrupt, 1, 6) == 'early_' then return { 'completed' } end --@guard end-early
  if (state == 'none') ~= (refused ~= '') then return { 'conflict', 'entry', state } end --@guard end-begun
  local other = taken(id, at, entry)
  if other then return { 'mismatch', other } end
  if state == 'none' then digest = refused end
  if not note_call(id, entry, 'end', CALL.RESOLVED, digest, interrupt, attempt, fence) then return { 'conflict', 'entry', state } end
  note_place(id, at, entry, digest)
  write('HSET', SEG.journal, id, 'r ' .. entry, result)
  f.entries, f.bytes = sum(f.entries, 1), sum(f.bytes, #result)
  touch(r)
  return { 'accepted', f.entries, f.bytes }
end)
