-- ring: writes the entry of an open, unseen interrupt again, where the last one can no longer reach its readers. A
-- bell and the time of the ring are all it writes.
-- KEYS  per item: interrupt, interrupts, unseen
-- ARGV  per item: size, interrupt, group, period
-- Reply per item: rung | waits (its entry is on its way) | nothing
return each(function()
  local i = load('interrupt', arg())
  local group, period = arg(), tonumber(arg())
  if i.f.state ~= SET.OPEN then
    if i.f.audience then write('ZREM', 'unseen', i.f.audience, i.id) end
    return { 'nothing' }
  end
  if tonumber(redis.call('ZSCORE', key('unseen', i.f.audience, 'zset'), i.id) or '0') > now - period then return { 'waits' } end
  local stream = key('interrupts', nil, 'stream')
  local bell = i.f.bell or '0-0'
  local known = redis.call('XRANGE', stream, bell, bell, 'COUNT', 1)
  local owed = redis.call('XPENDING', stream, group, bell, bell, 1)
  if #known > 0 and #owed > 0 then --@guard ring-pending
    write('ZADD', 'unseen', i.f.audience, int(now), i.id) --@guard ring-pending
    return { 'waits' } --@guard ring-pending
  end --@guard ring-pending
  ring_interrupt(i)
  return { 'rung' }
end)
