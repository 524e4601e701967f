-- handle: what the start of a long-running call returned, by which it is known elsewhere. It never reopens a call that
-- was completed meanwhile. Safe to repeat.
-- KEYS  per item: run, calls, journal
-- ARGV  per item: size, run, fence, nonce, entry, handle
-- Reply per item: ok state | stale_lease
--@use _runs
--@use _calls
return each(function()
  local id, fence, nonce, entry, handle = args()
  local r = load(SEG.run, id)
  if not holds(r, fence, nonce) then return { 'stale_lease', r.f.state or '' } end
  local state = call_record(id, entry)
  if state ~= CALL.AWAITING_COMPLETION then return { 'ok', state } end --@guard handle-final
  write('HSET', SEG.journal, id, 'h ' .. entry, handle)
  return { 'ok', state }
end)
