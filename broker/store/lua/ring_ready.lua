-- ring_ready: wakes workers of a pool again whose oldest ready run nobody took within the period. A bell is all it
-- writes, so a repeat rings once more and does no harm.
-- KEYS  ready, bell per item
-- ARGV  per item: size, pool, how many bells at most
-- Reply per item: rung n
return each(function()
  local pool, most = args()
  local rings = math.min(read('ZCARD', key(SEG.ready, pool)), tonumber(most))
  for n = 1, rings do write('XADD', SEG.bell, pool, '*', 'run', '', 'seq', '') end
  return { 'rung', int(rings) }
end)
