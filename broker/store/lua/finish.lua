-- finish: closes a run under its lease, or, in mode each, hands it on to what is still open or unread. Safe to repeat.
-- KEYS  per item: run, result, timers, ready, pools, idle, counter, active, dispositions, retention, history
-- ARGV  per item: size, run, fence, nonce, by, result
-- Reply per item: accepted state | replayed state | stale_lease state
return each(function()
  local id, fence, nonce, by, result = arg(), arg(), arg(), arg(), arg()
  local r = load('run', id)
  local f = r.f
  if f.state == RUN.FINISHED and f.fence == fence and f.nonce == nonce then return { 'replayed', f.state } end
  if not holds(r, fence, nonce) then return { 'stale_lease', f.state or '' } end
  local fresh = {}
  for _, one in ipairs(words(f.fresh)) do
    local spent = false
    if has(f.shown, one, ' ') then spent = true end --@guard spent
    if not spent then fresh[#fresh + 1] = one end
  end
  if f.mode == MODE.EACH and (#fresh > 0 or tonumber(f.left) > 0) then --@guard unread
    unlease(r) --@guard unread
    set(r, 'fresh', table.concat(fresh, ' ')) --@guard unread
    set(r, 'tries', '0') --@guard unread
    move(r, 'finish', #fresh > 0 and RUN.READY or RUN.WAITING) --@guard unread
    if #fresh > 0 then offer(r) end --@guard unread
    history(f.session, 'handed_on', { run = id, seq = f.seq, state = f.state, op = fence }) --@guard unread
    return { 'accepted', f.state } --@guard unread
  end --@guard unread
  move(r, 'finish', RUN.FINISHED)
  set(r, 'lease_until', '')
  set(r, 'shown', '')
  set(r, 'fresh', '')
  write('ZREM', 'timers', nil, 'r ' .. id)
  write('SET', 'result', id, result)
  close_run(r, RUN.FINISHED, { by = by, op = fence })
  return { 'accepted', f.state }
end)
