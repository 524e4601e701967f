-- fail: ends an attempt that raised. Back after `pause`, or dead after too many. A repeat is told stale_lease.
-- KEYS  per item: run, errors, timers, ready, pools, idle, counter, dead, dispositions, retention, history
-- ARGV  per item: size, run, fence, nonce, pause, final (1: dead at once), kind, text
-- Reply per item: ok state | stale_lease
--@use _runs
return each(function()
  local id, fence, nonce, pause, final, kind, text = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not holds(r, fence, nonce) then return { 'stale_lease', f.state or '' } end
  note_error(r, kind, text)
  history(f.session, 'failed', id, f.seq, '', '', '', fence, '', kind)
  if final == '1' then f.tries = int(TRIES) end
  return { 'ok', give_back(r, 'fail', tonumber(pause), kind) }
end)
