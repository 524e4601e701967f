-- check: whether this user may run every command the scripts use, tried on scratch keys that are deleted again. A
-- command that is refused in the middle of a script would leave its earlier writes, so it is found out before. Safe to
-- repeat.
-- KEYS  verdict (of a scratch interrupt that never exists), and the scratch keys
-- ARGV  per item: size, decider (1: verdicts are written too)
-- Reply per item: ok | denied command text
return each(function()
  local decider = arg() == '1'
  local s, h, z, l, x = key(SEG.scratch, 's'), key(SEG.scratch, 'h'), key(SEG.scratch, 'z'), key(SEG.scratch, 'l'), key(SEG.scratch, 'x')
  local tried = {
    { 'SET', s, '1' }, { 'MSET', s, '1' }, { 'GET', s }, { 'TYPE', s }, { 'EXISTS', s }, { 'HSET', h, 'a', '1' }, { 'HGETALL', h }, { 'HGET', h, 'a' }, { 'HKEYS', h }, { 'HLEN', h }, { 'HDEL', h, 'b' },
    { 'ZADD', z, 'NX', '1', 'a' }, { 'ZSCORE', z, 'a' }, { 'ZCARD', z }, { 'ZRANGE', z, '0', '0', 'WITHSCORES' }, { 'ZREM', z, 'b' }, { 'ZREMRANGEBYRANK', z, '5', '6' },
    { 'ZREMRANGEBYSCORE', z, '5', '6' }, { 'DEL', z },
    { 'RPUSH', l, 'a' }, { 'LRANGE', l, '0', '0' }, { 'LINDEX', l, '0' }, { 'LLEN', l }, { 'LTRIM', l, '0', '5' },
    { 'XADD', x, '*', 'a', '1' }, { 'XRANGE', x, '-', '+', 'COUNT', '1' }, { 'XACK', x, 'g', '1-1' }, { 'XPENDING', x, 'g' }, { 'XINFO', 'GROUPS', x },
    { 'SADD', key(SEG.scratch, 'm'), 'a' }, { 'SREM', key(SEG.scratch, 'm'), 'a' }, { 'SCARD', key(SEG.scratch, 'm') }, { 'SPOP', key(SEG.scratch, 'm') },
    { PUBLISH, TAG .. SEG.settled .. 'scratch', '' }, { PUBLISH, TAG .. SEG.wake .. 'scratch', '' }, { PUBLISH, TAG .. SEG.stir, '' },
  }
  if decider then
    tried[#tried + 1] = { 'SET', key(SEG.verdict, 'scratch'), '' }
    tried[#tried + 1] = { 'DEL', key(SEG.verdict, 'scratch') }
  end
  local reply = { 'ok' }
  for _, command in ipairs(tried) do
    local answer = redis.pcall(unpack(command))
    local said = type(answer) == 'table' and answer.err or ''
    if said ~= '' and not string.find(said, 'NOGROUP', 1, true) then
      reply = { 'denied', command[1], said }
      break
    end
  end
  for _, name in ipairs({ s, h, z, l, x, key(SEG.scratch, 'm') }) do redis.pcall('DEL', name) end
  return reply
end)
