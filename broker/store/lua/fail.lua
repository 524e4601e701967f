-- fail: ends an attempt that raised. Back after `pause`, or dead after too many. A repeat is told stale_lease.
-- KEYS  per item: run, errors, timers, ready, pools, idle, counter, dead, dispositions, retention, history
-- ARGV  per item: size, run, fence, nonce, pause, final (1: dead at once), kind, text
-- Reply per item: ok state | stale_lease
return each(function()
  local id, fence, nonce, pause, final, kind, text = arg(), arg(), arg(), tonumber(arg()), arg(), arg(), arg()
  local r = load('run', id)
  if not holds(r, fence, nonce) then return { 'stale_lease', r.f.state or '' } end
  note_error(r, kind, text)
  history(r.f.session, 'failed', { run = id, seq = r.f.seq, op = fence, detail = kind })
  if final == '1' then set(r, 'tries', int(TRIES)) end
  return { 'ok', give_back(r, 'fail', pause, kind) }
end)
