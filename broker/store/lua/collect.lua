-- collect: deletes what has been settled for long enough. All records of a closed run go together. Safe to repeat.
-- KEYS  retention; per item: every key named in it, and what the item's kind needs (see below)
-- ARGV  per item: size, member of the retention set, kind, and
--       r: run, session, number of interrupts, for each id, call, verdict      i: interrupt, session, call, verdict, run
--       h: session                                                   e: verdict, session, field
-- Reply per item: collected | nothing
--@use _runs
--@use _calls
-- The keys of an interrupt, among those that go.
local function drop_keys(gone, id, verdict)
  for _, kind in ipairs({ SEG.interrupt, SEG.question, SEG.verdict, SEG.default }) do gone[#gone + 1] = key(kind, id) end
  if verdict ~= '' and verdict ~= id then gone[#gone + 1] = key(SEG.verdict, verdict) end
end

local function delete(gone) pending[#pending + 1] = { 'DEL', unpack(gone) } end

-- Takes a word out of what a call id of the session stands for, and puts another one in its place where one is given.
local function unalias(session, call, word, instead)
  local aliases, left = map(SEG.aliases, session), {}
  for _, other in ipairs(words(get(aliases, 'call:' .. call))) do
    if other ~= word and other ~= instead then left[#left + 1] = other end
  end
  if instead then left[#left + 1] = instead end
  set(aliases, 'call:' .. call, table.concat(left, ' '))
end

local function drop_run()
  local id, session, count, gone = arg(), arg(), tonumber(arg()), {}
  for _ = 1, count do
    local interrupt, call, verdict = arg(), arg(), arg()
    drop_keys(gone, interrupt, verdict)
    if call ~= '' then unalias(session, call, interrupt) end
  end
  for _, call in ipairs(read('HKEYS', key(SEG.calls, id))) do unalias(session, call, '~' .. id) end
  for _, kind in ipairs({ SEG.run, SEG.input, SEG.state, SEG.calls, SEG.journal, SEG.result, SEG.errors, SEG.said }) do
    gone[#gone + 1] = key(kind, id)
  end
  delete(gone)
end

-- Whether the journal of a run that is not closed has yet to read how a call ended: that lives as long as the run does.
local function needed(run, call, about)
  local r = load(SEG.run, run)
  if not r.exists or r.f.state == RUN.FINISHED or r.f.state == RUN.WITHDRAWN then return false end
  local _, _, _, interrupt = call_record(run, call)
  local journal = key(SEG.journal, run)
  if interrupt ~= about or read('HGET', journal, 'r ' .. call) then return false end
  return redis_call('EXISTS', journal) == 1 or string.sub(about, 1, 6) == 'early_'
end

local function later(member, span)
  place(SEG.retention, nil, member, int(now + span))
  return { 'nothing' }
end

-- An interrupt of a run that goes on. That its call id was seen is remembered for as long as the run is.
local function drop_interrupt(member)
  local id, session, call, verdict, run = arg(), arg(), arg(), arg(), arg()
  if run ~= '' and call ~= '' and needed(run, call, id) then return later(member, KEEP_SETTLED) end --@guard keep-needed
  local gone = {}
  drop_keys(gone, id, verdict)
  delete(gone)
  if call ~= '' then unalias(session, call, id, '~' .. run) end
end

local function trim_history(member)
  local session = arg()
  local name = key(SEG.history, session)
  local old = 0
  for _, entry in ipairs(read('LRANGE', name, 0, 499)) do
    if (tonumber(string.sub(entry, 1, 16)) or 0) > now - KEEP_HISTORY then break end
    old = old + 1
  end
  if old > 0 then write('LTRIM', SEG.history, session, old, -1) end
  if redis_call('LLEN', name) > old then
    local first = tonumber(string.sub(redis_call('LINDEX', name, old), 1, 16)) or 0
    place(SEG.retention, nil, member, int(first + KEEP_HISTORY))
  else
    place(SEG.retention, nil, member, false)
  end
end

-- An answer whose question never came, or came and did not fit: reported once, and its verdict goes.
local function drop_early(member)
  local verdict, session, field = arg(), arg(), arg()
  local run, call = string.match(field, '^r (%S+) %d+ (.*)$')
  if not run then run, call = string.match(field, '^j (%S+) (.*)$') end
  if run and needed(run, call, verdict) then return later(member, KEEP_PARKED) end --@guard keep-early
  local early = map(SEG.early, session)
  write('DEL', SEG.verdict, verdict)
  if not get(early, field) then return end
  set(early, field, '')
  history(session, 'unmatched', run, '', '', '', '', '', '', field)
  tell('unmatched', '', session, '')
end

local DROP = { r = drop_run, i = drop_interrupt, e = drop_early }

return each(function()
  local member, kind = arg(), arg()
  return unless_corrupt(SEG.retention, nil, member, function()
    local due_at = tonumber(score(SEG.retention, nil, member) or '0')
    if due_at == 0 or due_at > now then return { 'nothing' } end --@guard retention
    if kind == 'h' then
      trim_history(member)
    else
      place(SEG.retention, nil, member, false)
      local put_off = DROP[kind](member)
      if put_off then return put_off end
    end
    return { 'collected' }
  end)
end)
