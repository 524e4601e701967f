-- register: says that a worker is there and what it runs (or, with an empty record, that it has left). Safe to repeat.
-- KEYS  workers
-- ARGV  per item: size, worker, record
-- Reply per item: ok now
return each(function()
  local worker, record = arg(), arg()
  if record == '' then
    write('HDEL', 'workers', nil, worker)
  else
    write('HSET', 'workers', nil, worker, NOW .. ' ' .. record)
  end
  return { 'ok', NOW }
end)
