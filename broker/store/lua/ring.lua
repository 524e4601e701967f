-- ring: writes the entry of an open, unseen interrupt again, where the last one can no longer reach its readers: it was
-- trimmed, or handed out and neither pending nor seen. A bell and the time of the ring are all it writes. Safe to repeat.
-- KEYS  per item: interrupt, interrupts, unseen
-- ARGV  per item: size, interrupt, group, period
-- Reply per item: rung | waits (its entry is on its way) | nothing
--@use _runs
--@use _calls
--@use _interrupts
local groups

-- How far each group of the stream has come: name -> id of the entry that it was handed last.
local function handed_out(stream)
  if groups then return groups end
  groups = {}
  for _, row in ipairs(redis_call('XINFO', 'GROUPS', stream)) do
    local facts = {}
    for n = 1, #row, 2 do facts[row[n]] = row[n + 1] end
    groups[facts.name] = facts['last-delivered-id']
  end
  return groups
end

local function after(a, b)
  local ams, aseq = string.match(a, '^(%d+)-(%d+)$')
  local bms, bseq = string.match(b, '^(%d+)-(%d+)$')
  ams, bms = tonumber(ams), tonumber(bms)
  return ams > bms or (ams == bms and tonumber(aseq) > tonumber(bseq))
end

-- Whether a reader of the group still gets the entry: not handed out yet, or in the hands of one.
local function reaches(stream, group, bell)
  if #read('XRANGE', stream, bell, bell, 'COUNT', 1) == 0 then return false end
  local last = handed_out(stream)[group]
  if not last or after(bell, last) then return true end --@guard ring-ahead
  return last ~= nil and #redis_call('XPENDING', stream, group, bell, bell, 1) > 0 --@guard ring-pending
end

return each(function()
  local id, group, period = arg(), arg(), tonumber(arg())
  return unless_corrupt(SEG.unseen, group, id, function()
    local i = load(SEG.interrupt, id)
    if i.f.state ~= SET.OPEN then
      place(SEG.unseen, i.f.audience or group, id, false)
      return { 'nothing' }
    end
    local rung = tonumber(score(SEG.unseen, i.f.audience, id) or '')
    if not rung then return { 'nothing' } end --@guard ring-seen
    if rung and rung > now - period then return { 'waits' } end --@guard ring-period
    local stream = key(SEG.interrupts)
    if i.f.bell and reaches(stream, group, i.f.bell) then --@guard ring-lost
      place(SEG.unseen, i.f.audience, id, NOW) --@guard ring-lost
      return { 'waits' } --@guard ring-lost
    end --@guard ring-lost
    ring_interrupt(i, '1')
    return { 'rung' }
  end)
end)
