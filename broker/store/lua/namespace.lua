-- namespace: creates the settings of a namespace, or gives those it has. Safe to repeat; never changes one.
-- KEYS  meta
-- ARGV  per item: size, then name and value of each setting
-- Reply per item: created | found, then name and value of each setting it has
return each(function()
  local r = load('meta')
  local reply = { r.exists and 'found' or 'created' }
  local count = tonumber(arg())
  for _ = 1, count do
    local name, value = arg(), arg()
    if reply[1] == 'created' then set(r, name, value) end
  end
  for name, value in pairs(r.f) do
    reply[#reply + 1] = name
    reply[#reply + 1] = value
  end
  return reply
end)
