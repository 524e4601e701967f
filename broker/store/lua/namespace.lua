-- namespace: creates the settings of a namespace, or gives those it has. Safe to repeat; never changes one.
-- KEYS  meta
-- ARGV  per item: size, then name and value of each setting
-- Reply per item: created | found, then name and value of each setting it has
return each(function()
  local found = read('HGETALL', key(SEG.meta))
  local reply, count = { #found > 0 and 'found' or 'created' }, tonumber(arg())
  local given = {}
  for n = 1, 2 * count do given[n] = arg() end
  if #found == 0 then write('HSET', SEG.meta, nil, unpack(given)) end
  for _, part in ipairs(#found > 0 and found or given) do reply[#reply + 1] = part end
  return reply
end)
