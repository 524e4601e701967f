-- ring_ready: wakes workers of a pool that has ready runs which nobody takes. It writes no record, so a repeat wakes some
-- more and does no harm.
-- KEYS  ready, idle per item
-- ARGV  per item: size, pool, how many workers at most, all (1: where too few are known to wait, all of the queue)
-- Reply per item: rung n
--@use _runs
return each(function()
  local pool, most, all = args()
  local rings = math.min(read('ZCARD', key(SEG.ready, pool)), tonumber(most))
  local known = read('SCARD', key(SEG.idle, pool))
  for _ = 1, math.min(rings, known) do wake(pool, '') end
  -- The names may have been lost with the server's data; workers listen for their queue too.
  if all == '1' and rings > known then
    pending[#pending + 1] = { PUBLISH, TAG .. SEG.wake .. ':' .. string.match(pool, '^[^:]*'), '' }
  end
  return { 'rung', int(rings) }
end)
