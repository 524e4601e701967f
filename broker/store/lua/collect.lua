-- collect: deletes what has been settled for long enough. All records of a closed run go together. Safe to repeat.
-- KEYS  retention; per item: every key named in it, and what the item's kind needs (see below)
-- ARGV  per item: size, member of the retention set, kind, and
--       r: run, session, number of interrupts, for each id, call, verdict      i: interrupt, session, call, verdict, run
--       h: session                                                   e: verdict, session, field
-- Reply per item: collected | nothing
--@use _calls
local function drop_keys(id, verdict)
  for _, kind in ipairs({ 'interrupt', 'question', 'verdict', 'default' }) do write('DEL', kind, id) end
  if verdict ~= '' and verdict ~= id then write('DEL', 'verdict', verdict) end
end

-- Takes a word out of what a call id of the session stands for, and puts another one in its place where one is given.
local function forget(session, call, word, instead)
  local aliases, left = map('aliases', session), {}
  for _, other in ipairs(words(aliases.f['call:' .. call])) do
    if other ~= word and other ~= instead then left[#left + 1] = other end
  end
  if instead then left[#left + 1] = instead end
  set(aliases, 'call:' .. call, table.concat(left, ' '))
end

local function drop_run()
  local id, session, count = arg(), arg(), tonumber(arg())
  for _ = 1, count do
    local interrupt, call, verdict = arg(), arg(), arg()
    drop_keys(interrupt, verdict)
    if call ~= '' then forget(session, call, interrupt) end
  end
  for _, call in ipairs(read('HKEYS', key('calls', id))) do forget(session, call, '~' .. id) end
  for _, kind in ipairs({ 'run', 'input', 'state', 'calls', 'journal', 'result', 'errors', 'said' }) do write('DEL', kind, id) end
end

-- Whether the journal of a run that is not closed has yet to read how a call ended: that lives as long as the run does.
local function needed(run, call, about)
  local r = load('run', run)
  if not r.exists or r.f.state == RUN.FINISHED or r.f.state == RUN.WITHDRAWN then return false end
  local _, _, _, interrupt = call_record(run, call)
  local journal = key('journal', run)
  if interrupt ~= about or read('HGET', journal, 'r ' .. call) then return false end
  return redis_call('EXISTS', journal) == 1 or string.sub(about, 1, 6) == 'early_'
end

local function later(member, span)
  write('ZADD', 'retention', nil, int(now + span), member)
  return { 'nothing' }
end

-- An interrupt of a run that goes on. That its call id was seen is remembered for as long as the run is.
local function drop_interrupt(member)
  local id, session, call, verdict, run = arg(), arg(), arg(), arg(), arg()
  if run ~= '' and call ~= '' and needed(run, call, id) then return later(member, KEEP_SETTLED) end --@guard keep-needed
  drop_keys(id, verdict)
  if call ~= '' then forget(session, call, id, '~' .. run) end
end

local function trim_history(member)
  local session = arg()
  local name = key('history', session)
  local old = 0
  for _, entry in ipairs(read('LRANGE', name, 0, 499)) do
    if (tonumber(string.sub(entry, 1, 16)) or 0) > now - KEEP_HISTORY then break end
    old = old + 1
  end
  if old > 0 then write('LTRIM', 'history', session, old, -1) end
  if redis_call('LLEN', name) > old then
    local first = tonumber(string.sub(redis_call('LINDEX', name, old), 1, 16)) or 0
    write('ZADD', 'retention', nil, int(first + KEEP_HISTORY), member)
  else
    write('ZREM', 'retention', nil, member)
  end
end

-- An answer whose question never came, or came and did not fit: reported once, and its verdict goes.
local function drop_early(member)
  local verdict, session, field = arg(), arg(), arg()
  local run, call = string.match(field, '^r (%S+) %d+ (.*)$')
  if not run then run, call = string.match(field, '^j (%S+) (.*)$') end
  if run and needed(run, call, verdict) then return later(member, KEEP_PARKED) end --@guard keep-early
  local early = map('early', session)
  write('DEL', 'verdict', verdict)
  if not early.f[field] then return end
  set(early, field, nil)
  history(session, 'unmatched', { run = run, detail = field })
  write('XADD', 'dispositions', nil, '*', 'event', 'unmatched', 'interrupt', '', 'run', '', 'session', session)
end

local DROP = { r = drop_run, i = drop_interrupt, e = drop_early }

return each(function()
  local member, kind = arg(), arg()
  return unless_corrupt('retention', nil, member, function()
    local due_at = tonumber(read('ZSCORE', key('retention'), member) or '0')
    if due_at == 0 or due_at > now then return { 'nothing' } end --@guard retention
    if kind == 'h' then
      trim_history(member)
    else
      write('ZREM', 'retention', nil, member)
      local put_off = DROP[kind](member)
      if put_off then return put_off end
    end
    return { 'collected' }
  end)
end)
