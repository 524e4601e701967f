-- end: the result of an entry that was begun; from then on it is handed out and never runs again. A result that is
-- recorded already stays as it is, whoever comes second, and so does a completion that came before its question. Safe
-- to repeat.
-- KEYS  per item: run, calls, journal
-- ARGV  per item: size, run, fence, nonce, entry, result, digest of an entry that cannot be begun (empty: it was begun)
-- Reply per item: stale_lease | accepted entries bytes | replayed bytes | completed | conflict
--@use _calls
return each(function()
  local id, fence, nonce, entry, result, refused = arg(), arg(), arg(), arg(), arg(), arg()
  local r = load('run', id)
  if not holds(r, fence, nonce) then return { 'stale_lease', r.f.state or '' } end
  local state, attempt, digest, interrupt = call_record(id, entry)
  local stored = read('HGET', key('journal', id), 'r ' .. entry)
  if stored then return { 'replayed', stored } end --@guard end-final
  if state == CALL.RESOLVED and string.sub(interrupt, 1, 6) == 'early_' then return { 'completed' } end --@guard end-early
  if (state == 'none') ~= (refused ~= '') then return { 'conflict', 'entry', state } end --@guard end-begun
  if state == 'none' then digest = refused end
  if not note_call(id, entry, 'end', CALL.RESOLVED, digest, interrupt, attempt, fence) then return { 'conflict', 'entry', state } end
  write('HSET', 'journal', id, 'r ' .. entry, result)
  bump(r, 'entries', 1)
  bump(r, 'bytes', #result)
  return { 'accepted', r.f.entries, r.f.bytes }
end)
