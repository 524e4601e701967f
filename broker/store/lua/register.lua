-- register: says that a worker is there and what it runs (or, with an empty record, that it has left). Safe to repeat.
-- KEYS  workers
-- ARGV  per item: size, worker, record
-- Reply per item: ok now workers
return each(function()
  local worker, record = arg(), arg()
  local others = read('HLEN', key('workers'))
  if record == '' then
    write('HDEL', 'workers', nil, worker)
  else
    write('HSET', 'workers', nil, worker, NOW .. ' ' .. record)
  end
  return { 'ok', NOW, int(others) }
end)
