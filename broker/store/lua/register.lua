-- register: says that a worker is there and what it runs (or, with an empty record, that it has left). Safe to repeat.
-- KEYS  workers
-- ARGV  per item: size, worker, record
-- Reply per item: ok now workers
return each(function()
  local worker, record = args()
  local others = read('HLEN', key(SEG.workers))
  if record == '' then
    write('HDEL', SEG.workers, nil, worker)
  else
    write('HSET', SEG.workers, nil, worker, NOW .. ' ' .. record)
  end
  return { 'ok', NOW, int(others) }
end)
