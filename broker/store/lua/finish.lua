-- finish: closes a run under its lease, or, in mode each, hands it on to what is still open or unread. Safe to repeat.
-- KEYS  per item: run, result, timers, ready, pools, idle, counter, active, dispositions, retention, history
-- ARGV  per item: size, run, fence, nonce, by, result
-- Reply per item: accepted state | replayed state | stale_lease state
--@use _runs
return each(function()
  local id, fence, nonce, by, result = args()
  local r = load(SEG.run, id)
  local f = r.f
  if f.state == RUN.FINISHED and f.fence == fence and f.nonce == nonce then return { 'replayed', f.state } end
  if not holds(r, fence, nonce) then return { 'stale_lease', f.state or '' } end
  local fresh = {}
  if f.mode == MODE.EACH then
    for _, one in ipairs(words(f.fresh)) do
      local spent = false
      if has(f.shown, one, ' ') then spent = true end --@guard spent
      if not spent then fresh[#fresh + 1] = one end
    end
  end
  if f.mode == MODE.EACH and (#fresh > 0 or tonumber(f.left) > 0) then --@guard unread
    unlease(r) --@guard unread
    f.fresh, f.tries = some(table.concat(fresh, ' ')), '0' --@guard unread
    move(r, 'finish', #fresh > 0 and RUN.READY or RUN.WAITING) --@guard unread
    if #fresh > 0 then offer(r) end --@guard unread
    history(f.session, 'handed_on', id, f.seq, '', f.state, '', fence) --@guard unread
    return { 'accepted', f.state } --@guard unread
  end --@guard unread
  move(r, 'finish', RUN.FINISHED)
  f.lease_until, f.shown, f.fresh = nil, nil, nil
  place(SEG.timers, nil, 'r ' .. id, false)
  put(SEG.result, id, result)
  close_run(r, RUN.FINISHED, by, fence)
  return { 'accepted', f.state }
end)
