-- What becomes of runs, and the history that each step leaves an entry in.

local AT = string.format('%016.0f', now)
local function history(session, event, run, seq, interrupt, state, by, op, digest, detail)
  local entry = { 1, event, run or '', seq or '', interrupt or '', state or '', by or '', op or '', digest or '', detail or '' }
  write('RPUSH', SEG.history, session, AT .. cmsgpack.pack(entry))
  pending[#pending].first = 'h ' .. session
  need(key(SEG.retention), 'zset')
end

local function pool_of(r)
  local f = r.f
  return f.queue .. ':' .. f.agent .. ':' .. (f.build or '')
end

-- What those who follow what ends are told, and what those who wait for one id.
local function tell(event, run, session, interrupt)
  if not interrupt then return write('XADD', SEG.dispositions, nil, '*', 'event', event, 'run', run, 'session', session) end
  write('XADD', SEG.dispositions, nil, '*', 'event', event, 'interrupt', interrupt, 'run', run, 'session', session)
end

local function publish(id, state) pending[#pending + 1] = { PUBLISH, TAG .. SEG.settled .. id, state } end

-- Wakes one of the workers of a pool that wait, if any does, and tells it what it needs to take a run at once. Those
-- that are at work look for more before they wait.
local function wake(pool, said)
  write('SPOP', SEG.idle, pool)
  pending[#pending].wakes = said
end

local function ring_ready(r)
  local f, pool = r.f, pool_of(r)
  wake(pool, cmsgpack.pack({ r.id, pool, f.session, f.seq, f.fresh or '', #(f.ids or '') < 1000 and f.ids or '' }))
end

-- Puts a run that is ready into the list its workers take from: by priority, then by age.
local function offer(r)
  local f, pool = r.f, pool_of(r)
  f.offered = NOW
  touch(r)
  place(SEG.ready, pool, r.id, int(next_number() - tonumber(f.priority or '0') * 4398046511104))
  place(SEG.pools, nil, pool)
  ring_ready(r)
end

-- Fields of a run that is new. Its state is set by the move that makes it.
local function create(r, session, queue, agent, build, priority)
  local f = r.f
  f.session, f.queue, f.agent, f.build, f.priority, f.created = session, queue, agent, some(build), priority, NOW
  f.seq, f.fence, f.tries, f.left = '0', '0', '0', '0'
  touch(r)
end

local function unlease(r)
  local f = r.f
  f.nonce, f.lease_until, f.shown = nil, nil, nil
  touch(r)
  place(SEG.timers, nil, 'r ' .. r.id, false)
end

local function holds(r, fence, nonce)
  local f = r.f
  if not r.exists or f.state ~= RUN.LEASED then return false end
  if f.fence ~= fence or f.nonce ~= nonce then return false end --@guard fence
  return true
end

local function note_error(r, kind, text)
  local f = r.f
  write('RPUSH', SEG.errors, r.id, cmsgpack.pack({ NOW, f.fence or '', f.holder or '', kind, text }))
  write('LTRIM', SEG.errors, r.id, '-20', '-1')
end

-- Ends a failed attempt: back to the list after a while, or, after too many, to the dead letters.
local function give_back(r, operation, pause, why)
  local f = r.f
  unlease(r)
  if tonumber(f.tries) >= TRIES then --@guard tries
    move(r, operation, RUN.DEAD) --@guard tries
    place(SEG.dead, nil, r.id, int(next_number())) --@guard tries
    tell('dead', r.id, f.session) --@guard tries
    history(f.session, 'dead', r.id, f.seq, '', RUN.DEAD, '', '', '', why) --@guard tries
    publish(r.id, RUN.DEAD) --@guard tries
    return RUN.DEAD --@guard tries
  end --@guard tries
  move(r, operation, RUN.READY)
  if pause > 0 then
    f.ready_at = int(now + pause)
    place(SEG.timers, nil, 'r ' .. r.id, f.ready_at)
  else
    offer(r)
  end
  return RUN.READY
end

local function make_ready(r, operation)
  local f = r.f
  move(r, operation, RUN.READY)
  f.tries = '0'
  offer(r)
end

local function close_run(r, event, by, op, detail)
  local f = r.f
  write('HDEL', SEG.active, f.session, r.id)
  place(SEG.retention, nil, 'r ' .. r.id, int(now + KEEP_SETTLED))
  history(f.session, event, r.id, f.seq, '', f.state, by, op, '', detail)
  tell(event, r.id, f.session)
  publish(r.id, f.state)
end
