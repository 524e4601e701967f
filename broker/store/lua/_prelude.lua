-- Shared by every script. The loader puts before it: the shebang with the flags, SEG (key segments), MOVES (the
-- transition table), STATES (the states of each record) and PUBLISH, and puts in the words for RUN.X, SET.X, CALL.X,
-- MODE.X and EXPIRY.X.
--
-- How a script works: `each(n, decide)` runs `decide` for one item after the other. While it decides, an item only
-- reads, and collects what it would write; a key that was not declared, a key of the wrong type and a move that is not
-- in the table end the item with nothing written. Only then its writes are carried out, and none of them can refuse.
--
-- ARGV starts with: number of items, retention of settled records, of history, of parked answers (microseconds), and
-- how many tries a run has. Times inside are microseconds since the epoch, as the server's clock says. Operation ids
-- that scripts make hold a space, which those of callers never do.

local redis_call = redis.call
local TAG = string.match(KEYS[1], '^({[^}]*})')
local declared, kinds, records, list, pending, bells, unchecked, counter = {}, {}, {}, {}, {}, {}, {}, nil
for _, name in ipairs(KEYS) do declared[name] = true end

local cursor = 0
local function arg() cursor = cursor + 1 return ARGV[cursor] end
local N = tonumber(arg())
local KEEP_SETTLED, KEEP_HISTORY, KEEP_PARKED, TRIES = tonumber(arg()), tonumber(arg()), tonumber(arg()), tonumber(arg())

local time = redis_call('TIME')
local now = time[1] * 1000000 + time[2]
--@clock

local function int(x) return string.format('%.0f', x) end
local NOW = int(now)

-- The name of a key. Nothing else makes names, and nothing undeclared is touched.
local BEFORE = setmetatable({}, { __index = function(names, kind)
  local name = TAG .. SEG[kind]
  names[kind] = name
  return name
end })
local function key(kind, id)
  local name = id and BEFORE[kind] .. id or BEFORE[kind]
  if not declared[name] then error({ 'address', kind, id or '' }) end --@guard declared
  return name
end

-- What a command reads of a key, which another program may have given another type.
local READS = { GET = 'string', HGET = 'hash', HGETALL = 'hash', HKEYS = 'hash', HLEN = 'hash', LRANGE = 'list', SCARD = 'set', ZCARD = 'zset',
  ZRANGE = 'zset', ZSCORE = 'zset' }
local function read(command, name, ...)
  local reply = redis.pcall(command, name, ...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'WRONGTYPE', 1, true) then error({ 'corrupt', name, redis_call('TYPE', name).ok }) end --@guard types
    error(reply)
  end
  kinds[name] = kinds[name] or READS[command]
  return reply
end

-- Keys that an item writes and has not read: their types are looked at when it has decided, before its first write.
local NEEDS = { SET = 'string', HSET = 'hash', HDEL = 'hash', ZADD = 'zset', ZREM = 'zset', ZREMRANGEBYSCORE = 'zset',
  ZREMRANGEBYRANK = 'zset', RPUSH = 'list', LTRIM = 'list', XADD = 'stream', XACK = 'stream', SADD = 'set',
  SPOP = 'set' }
local NEW = { input = true, state = true, question = true, default = true, verdict = true, result = true }
local function need(kind, name, want)
  local found = kinds[name]
  if not found then
    kinds[name] = want
    unchecked[#unchecked + 1] = { name, want, NEW[kind] }
  elseif found ~= want then
    error({ 'corrupt', name, found }) --@guard types
  end
end

local function check()
  if #unchecked == 0 then return end
  local new = {}
  for _, u in ipairs(unchecked) do if u[3] then new[#new + 1] = u[1] end end
  -- Most are written once, so one question says of all that they are not there.
  local none = #new > 1 and redis_call('EXISTS', unpack(new)) == 0
  for _, u in ipairs(unchecked) do
    if not (u[3] and none) then
      local found = redis_call('TYPE', u[1]).ok
      if found ~= 'none' and found ~= u[2] then error({ 'corrupt', u[1], found }) end --@guard types
    end
  end
  unchecked = {}
end

-- Lists that a sweeper looks after: one that sleeps is told when they get more.
local STIRS, stirred = { timers = true, unseen = true, ready = true }, false

local function write(command, kind, id, ...)
  local name = key(kind, id)
  if command == 'ZADD' and STIRS[kind] then stirred = true end
  local want = NEEDS[command]
  if want then need(kind, name, want) end
  pending[#pending + 1] = { command, name, ... }
end

-- What a script relies on in a record that exists: a state it knows, and numbers where it counts.
local NUMBERS = { run = { 'seq', 'fence', 'tries', 'left', 'lease_until', 'ready_at', 'priority', 'entries',
  'bytes', 'cut' },
  interrupt = { 'seq', 'number', 'deadline' } }
local function trust(r)
  for field, value in pairs(r.f) do
    if type(field) ~= 'string' or type(value) ~= 'string' then error({ 'corrupt', r.key, 'record of another program' }) end --@guard texts
  end
  local known = string.find(STATES[r.kind], '|' .. (r.f.state or '') .. '|', 1, true)
  if not known then error({ 'corrupt', r.key, 'record in a state of another version' }) end --@guard known-state
  for _, field in ipairs(NUMBERS[r.kind]) do
    local value = r.f[field]
    if value and not tonumber(value) then error({ 'corrupt', r.key, 'record with letters for a number' }) end --@guard numbers
  end
end

local function unpacked(name, packed, least)
  local fine, said, more = pcall(cmsgpack.unpack, packed)
  if not fine or type(said) ~= 'table' or more ~= nil or (least and #said < least) then
    error({ 'corrupt', name, 'record of another program' })
  end
  return said
end

-- One record (a packed map of texts) as a table `f` of its fields; shared by the items of a batch, so that two may meet.
-- Fields that this release does not know stay in it.
local function load(kind, id)
  local name = key(kind, id)
  local r = records[name]
  if r then return r end
  local packed = read('GET', name)
  r = { kind = kind, id = id, key = name, f = packed and unpacked(name, packed) or {}, exists = packed and true or false }
  kinds[name] = 'string'
  if packed then trust(r) end
  records[name] = r
  list[#list + 1] = r
  return r
end

-- The same for hashes that are maps of a session or a run: a field is read when it is asked for, since they may be long.
local function map(kind, id, is_new)
  local name = key(kind, id)
  local r = records[name]
  if r then return r end
  local fields = is_new and {} or setmetatable({}, { __index = function(f, field)
    local value = read('HGET', name, field)
    rawset(f, field, value)
    return value
  end })
  r = { kind = kind, id = id, key = name, f = fields, changed = {} }
  records[name] = r
  list[#list + 1] = r
  return r
end

-- A field that is empty is not stored. In a map it reads as absent while the script runs (false, so that nobody looks
-- again).
local function set(r, field, value)
  if r.changed then
    r.f[field] = value ~= '' and value or false
    r.changed[field] = true
    need(r.kind, r.key, 'hash')
    return
  end
  r.f[field] = value ~= '' and value or nil
  r.dirty, r.exists = true, true
end

local function bump(r, field, by) set(r, field, int((tonumber(r.f[field]) or 0) + by)) end

local function permitted(kind, operation, from, target)
  return string.find(MOVES, '|' .. kind .. ' ' .. operation .. ' ' .. from .. ' ' .. target .. '|', 1, true) ~= nil
end

-- Takes a record to another state, as the table allows; a state of another version is refused, never guessed.
local function move(r, operation, target, field)
  local from = r.f.state or 'none'
  if not permitted(r.kind, operation, from, target) then error({ 'conflict', operation, from }) end
  set(r, 'state', target)
end

local function next_number()
  if not counter then counter = tonumber(read('GET', key('counter')) or '0') end
  counter = counter + 1
  return counter
end

local function words(text)
  local found = {}
  for word in string.gmatch(text or '', '%S+') do found[#found + 1] = word end
  return found
end

local function has(text, word, mark)
  return string.find(mark .. (text or '') .. mark, mark .. word .. mark, 1, true) ~= nil
end

local function save(r)
  local put, drop = {}, {}
  for field in pairs(r.changed) do
    local value = r.f[field]
    if not value then
      drop[#drop + 1] = field
    else
      put[#put + 1] = field
      put[#put + 1] = value
    end
  end
  if #put > 0 then redis_call('HSET', r.key, unpack(put)) end
  if #drop > 0 then redis_call('HDEL', r.key, unpack(drop)) end
  r.changed = {}
end

local function send(w)
  local reply = (w[1] == 'XADD' and redis.pcall or redis_call)(unpack(w))
  if type(reply) == 'table' and reply.err then
    -- Another program used up the ids of the stream. A doorbell may be lost and a step may not.
    redis_call('DEL', w[2])
    reply = redis_call(unpack(w))
  end
  return reply
end

local function commit()
  for _, bell in ipairs(bells) do set(bell.of, 'bell', send(bell)) end
  for _, r in ipairs(list) do
    if r.dirty then
      redis_call('SET', r.key, cmsgpack.pack(r.f))
      r.dirty = false
    elseif r.changed and next(r.changed) then
      save(r)
    end
  end
  if counter then redis_call('SET', TAG .. SEG.counter, int(counter)) end
  for _, w in ipairs(pending) do
    local reply = send(w)
    if w.first and reply == 1 then redis_call(unpack(w.first)) end
    -- A name that nobody listens under is that of a worker that is gone: the next one is woken.
    while w.wakes and reply and redis_call(PUBLISH, TAG .. SEG.wake .. reply, w.wakes) == 0 do reply = send(w) end
  end
end

local function whole(decide)
  return function()
    local reply = decide()
    check()
    return reply
  end
end

local function each(decide)
  local replies, decided = {}, whole(decide)
  for n = 1, N do
    local size = tonumber(arg())
    local stop = cursor + size
    pending, bells = {}, {}
    local fine, reply = pcall(decided)
    if fine then
      commit()
    else
      -- What the item meant to change is forgotten; what others wrote is read again.
      records, list, kinds, unchecked, counter = {}, {}, {}, {}, nil
      if type(reply) ~= 'table' or reply.err then
        reply = { 'fault', tostring(type(reply) == 'table' and reply.err or reply) }
      end
    end
    replies[n] = reply
    cursor = stop
  end
  if stirred then redis_call(PUBLISH, TAG .. SEG.stir, '') end --@guard stir
  return replies
end

-- For sweeps: what is due but cannot be read keeps its place in the list of what is due, only not at the head, where it
-- would hold up all others. `index` and `name` are that list, `member` its place in it.
local function unless_corrupt(index, name, member, decide)
  local fine, reply = pcall(whole(decide))
  if fine then return reply end
  if type(reply) ~= 'table' or reply[1] ~= 'corrupt' then error(reply, 0) end
  records, list, pending, bells, kinds, unchecked, counter = {}, {}, {}, {}, {}, {}, nil
  write('ZADD', index, name, int(now + KEEP_PARKED), member)
  return reply
end

-- History ---------------------------------------------------------------------------------------------------------

local function history(session, event, e)
  local entry = { 1, event, e.run or '', e.seq or '', e.interrupt or '', e.state or '', e.by or '', e.op or '',
    e.digest or '', e.detail or '' }
  write('RPUSH', 'history', session, string.format('%016.0f', now) .. cmsgpack.pack(entry))
  local pushed, name = pending[#pending], key('retention')
  need('retention', name, 'zset')
  pushed.first = { 'ZADD', name, 'NX', int(now + KEEP_HISTORY), 'h ' .. session }
end

-- Runs ------------------------------------------------------------------------------------------------------------

local function pool_of(r) return r.f.queue .. ':' .. r.f.agent .. ':' .. (r.f.build or '') end

-- Wakes one of the workers of a pool that wait, if any does, and tells it what it needs to take a run at once. Those
-- that are at work look for more before they wait.
local function wake(pool, said)
  write('SPOP', 'idle', pool)
  pending[#pending].wakes = said
end

local function ring_ready(r)
  local f, pool = r.f, pool_of(r)
  wake(pool, cmsgpack.pack({ r.id, pool, f.session, f.seq, f.fresh or '', #(f.ids or '') < 1000 and f.ids or '' }))
end

-- Puts a run that is ready into the list its workers take from: by priority, then by age.
local function offer(r)
  write('ZADD', 'ready', pool_of(r), int(next_number() - tonumber(r.f.priority or '0') * 4398046511104), r.id)
  write('SADD', 'pools', nil, pool_of(r))
  ring_ready(r)
end

-- Fields of a run that is new; `fields` may say otherwise.
local function create(r, fields)
  local state = r.f.state
  r.f = fields
  for field, value in pairs({ state = state, seq = '0', fence = '0', tries = '0', left = '0', created = NOW }) do
    fields[field] = fields[field] or value
  end
  if fields.build == '' then fields.build = nil end
  r.dirty, r.exists = true, true
end

local function unlease(r)
  set(r, 'nonce', '')
  set(r, 'lease_until', '')
  set(r, 'shown', '')
  write('ZREM', 'timers', nil, 'r ' .. r.id)
end

local function holds(r, fence, nonce)
  if not r.exists or r.f.state ~= RUN.LEASED then return false end
  if r.f.fence ~= fence or r.f.nonce ~= nonce then return false end --@guard fence
  return true
end

local function note_error(r, kind, text)
  write('RPUSH', 'errors', r.id, cmsgpack.pack({ NOW, r.f.fence or '', r.f.holder or '', kind, text }))
  write('LTRIM', 'errors', r.id, '-20', '-1')
end

-- Ends a failed attempt: back to the list after a while, or, after too many, to the dead letters.
local function give_back(r, operation, pause, reason)
  unlease(r)
  if tonumber(r.f.tries or '0') >= TRIES then --@guard tries
    move(r, operation, RUN.DEAD) --@guard tries
    write('ZADD', 'dead', nil, int(next_number()), r.id) --@guard tries
    write('XADD', 'dispositions', nil, '*', 'event', 'dead', 'run', r.id, 'session', r.f.session) --@guard tries
    history(r.f.session, 'dead', { run = r.id, seq = r.f.seq, state = RUN.DEAD, detail = reason }) --@guard tries
    pending[#pending + 1] = { PUBLISH, TAG .. SEG.settled .. r.id, RUN.DEAD } --@guard tries
    return RUN.DEAD --@guard tries
  end --@guard tries
  move(r, operation, RUN.READY)
  if pause > 0 then
    set(r, 'ready_at', int(now + pause))
    write('ZADD', 'timers', nil, int(now + pause), 'r ' .. r.id)
  else
    offer(r)
  end
  return RUN.READY
end

local function make_ready(r, operation)
  move(r, operation, RUN.READY)
  set(r, 'tries', '0')
  offer(r)
end

local function close_run(r, event, e)
  write('HDEL', 'active', r.f.session, r.id)
  write('ZADD', 'retention', nil, int(now + KEEP_SETTLED), 'r ' .. r.id)
  e.run, e.seq, e.state = r.id, r.f.seq, r.f.state
  history(r.f.session, event, e)
  write('XADD', 'dispositions', nil, '*', 'event', event, 'run', r.id, 'session', r.f.session)
  pending[#pending + 1] = { PUBLISH, TAG .. SEG.settled .. r.id, r.f.state }
end
