-- collect: deletes what has been settled for long enough. All records of a closed run go together. Safe to repeat.
-- KEYS  retention; per item: every key named in it, and what the item's kind needs (see below)
-- ARGV  per item: size, member of the retention set, kind, and
--       r: run, session, number of interrupts, for each id, call, verdict      i: interrupt, session, call, verdict
--       h: session                                                   e: verdict, session, field
-- Reply per item: collected | nothing
local function drop_interrupt(id, session, call, verdict)
  for _, kind in ipairs({ 'interrupt', 'question', 'verdict', 'default' }) do write('DEL', kind, id) end
  if verdict ~= '' and verdict ~= id then write('DEL', 'verdict', verdict) end
  if call ~= '' then
    local aliases = load('aliases', session)
    local left = {}
    for _, other in ipairs(words(aliases.f['call:' .. call])) do
      if other ~= id then left[#left + 1] = other end
    end
    set(aliases, 'call:' .. call, table.concat(left, ' '))
  end
end

local function drop_run()
  local id, session, count = arg(), arg(), tonumber(arg())
  for _ = 1, count do
    local interrupt, call, verdict = arg(), arg(), arg()
    drop_interrupt(interrupt, session, call, verdict)
  end
  for _, kind in ipairs({ 'run', 'input', 'state', 'calls', 'result', 'errors' }) do write('DEL', kind, id) end
end

local function trim_history(member)
  local session = arg()
  local name = key('history', session, 'list')
  local old = 0
  for _, entry in ipairs(redis.call('LRANGE', name, 0, 499)) do
    if tonumber(string.sub(entry, 1, 16)) > now - KEEP_HISTORY then break end
    old = old + 1
  end
  if old > 0 then write('LTRIM', 'history', session, old, -1) end
  if redis.call('LLEN', name) > old then
    local first = redis.call('LINDEX', name, old)
    write('ZADD', 'retention', nil, int(tonumber(string.sub(first, 1, 16)) + KEEP_HISTORY), member)
  else
    write('ZREM', 'retention', nil, member)
  end
end

return each(function()
  local member, kind = arg(), arg()
  local due_at = tonumber(redis.call('ZSCORE', key('retention', nil, 'zset'), member) or '0')
  if due_at == 0 or due_at > now then return { 'nothing' } end --@guard retention
  if kind == 'h' then
    trim_history(member)
    return { 'collected' }
  end
  write('ZREM', 'retention', nil, member)
  if kind == 'r' then
    drop_run()
  elseif kind == 'i' then
    local id, session, call, verdict = arg(), arg(), arg(), arg()
    drop_interrupt(id, session, call, verdict)
  else
    local verdict, session, field = arg(), arg(), arg()
    local early = load('early', session)
    if early.f[field] then
      set(early, field, nil)
      write('DEL', 'verdict', verdict)
      history(session, 'unmatched', { detail = field })
      write('XADD', 'dispositions', nil, '*', 'event', 'unmatched', 'interrupt', '', 'run', '', 'session', session)
    end
  end
  return { 'collected' }
end)
