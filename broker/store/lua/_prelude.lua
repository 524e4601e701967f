-- Shared by every script. The loader puts before it: the shebang with the flags, MOVES (what the transition table
-- has of the operations in the script), STATES (the states of each record) and PUBLISH, and puts in the words for RUN.X, SET.X, CALL.X, MODE.X, EXPIRY.X, the key
-- segments for SEG.x, and the names that the fields of records have on the server for f.x.
--
-- How a script works: `each(decide)` runs `decide` for one item after the other. While it decides, an item only reads,
-- and collects what it would write; a key that was not declared, a key of the wrong type and a move that is not in the
-- table end the item with nothing written. Only then its writes are carried out, and none of them can refuse. Those
-- that can be joined over the items (values, members of sorted sets and of sets) are written at the end of the call.
--
-- ARGV starts with: number of items, retention of settled records, of history, of parked answers (microseconds), and
-- how many tries a run has. Times inside are microseconds since the epoch, as the server's clock says. Operation ids
-- that scripts make hold a space, which those of callers never do.

local redis_call, redis_pcall = redis.call, redis.pcall
local TAG = string.match(KEYS[1], '^({[^}]*})')
local declared = {}
for n = 1, #KEYS do declared[KEYS[n]] = true end

-- Of the call: names of keys that all items share, records by name, what is known of the types of keys, what is written
-- at the end.
local shared, records, types, values, members, counter, counted = {}, {}, {}, {}, {}, nil, nil
-- Sorted sets that are named in a set, and taken off it when they are empty: the set and the name.
local named = {}
-- Of the item: what it would change, and the keys whose types are to be looked at.
local touched, bells, pending, changes, puts, unchecked = {}, {}, {}, {}, {}, {}

local N, KEEP_SETTLED, KEEP_HISTORY = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local KEEP_PARKED, TRIES = tonumber(ARGV[4]), tonumber(ARGV[5])
local cursor, stop = 5, 5
local function arg() cursor = cursor + 1 return ARGV[cursor] end
-- All arguments of the item that are left.
local function args() return unpack(ARGV, cursor + 1, stop) end

local time = redis_call('TIME')
local now = time[1] * 1000000 + time[2]
--@clock

local function int(x) return string.format('%.0f', x) end
local NOW = int(now)

-- The name of a key. Nothing else makes names, and nothing undeclared is touched.
local function key(kind, id)
  local name = id and TAG .. kind .. id or shared[kind]
  if not name then
    name = TAG .. kind
    shared[kind] = name
  end
  if not declared[name] then error({ 'address', kind, id or '' }) end --@guard declared
  return name
end

-- What a command reads of a key, which another program may have given another type; false where there is none.
local function read(command, name, ...)
  if types[name] == 'none' then return false end
  local reply = redis_pcall(command, name, ...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'WRONGTYPE', 1, true) then error({ 'corrupt', name, redis_call('TYPE', name).ok }) end --@guard types
    error(reply)
  end
  return reply
end

-- Says of several keys at once that none of them is there, where that is so: then nobody asks about one again.
local function look(names)
  if redis_call('EXISTS', unpack(names)) > 0 then return end
  for n = 1, #names do types[names[n]] = 'none' end
end

-- Keys that an item writes and has not read: their types are looked at when it has decided, before its first write.
local function need(name, want)
  local found = types[name]
  if found == want then return end
  if not found then unchecked[#unchecked + 1] = name elseif found ~= 'none' then error({ 'corrupt', name, found }) end --@guard types
  types[name] = want
end

local function check()
  for n = 1, #unchecked do
    local name = unchecked[n]
    local found = redis_call('TYPE', name).ok
    if found ~= 'none' and found ~= types[name] then error({ 'corrupt', name, found }) end --@guard types
  end
  unchecked = {}
end

-- Lists that a sweeper looks after: one that sleeps is told when they get more.
local STIRS, stirred = { [SEG.timers] = true, [SEG.unseen] = true, [SEG.ready] = true }, false

-- A command on a key. Its first letter says of which type the key is.
local WANT = { H = 'hash', L = 'list', R = 'list', S = 'set', X = 'stream', Z = 'zset' }
local function write(command, kind, id, ...)
  local name = key(kind, id)
  local want = WANT[string.sub(command, 1, 1)]
  if want then need(name, want) end
  pending[#pending + 1] = { command, name, ... }
end

-- A whole value.
local function put(kind, id, value)
  local name = key(kind, id)
  need(name, 'string')
  puts[#puts + 1] = name
  puts[#puts + 1] = value
end

-- A member of a sorted set with its score; false takes it out. Without a score, a member of a set.
local function place(kind, id, member, score)
  local name = key(kind, id)
  need(name, score == nil and 'set' or 'zset')
  if score and STIRS[kind] then stirred = true end
  local n = #changes
  changes[n + 1], changes[n + 2], changes[n + 3] = name, member, score == nil and 'set' or score
end

-- The score of a member, false where it is none.
local function score(kind, id, member)
  local name = key(kind, id)
  local known = members[name] and members[name][member]
  if known ~= nil then return known end
  return read('ZSCORE', name, member)
end

local function unpacked(name, packed, least)
  local fine, said, more = pcall(cmsgpack.unpack, packed)
  if not fine or type(said) ~= 'table' or more ~= nil or (least and #said < least) then
    error({ 'corrupt', name, 'record of another program' })
  end
  return said
end

-- What a script relies on in a record: a state that it knows, what names its keys, and digits where it counts.
local function trust(r)
  local f = r.f
  if not STATES[r.kind][f.state] then error({ 'corrupt', r.key, 'record in a state of another version' }) end --@guard known-state
  local numbers, whole
  if r.kind == SEG.run then
    whole = f.agent and f.seq and f.fence and f.tries and f.left and (f.lease_until or f.state ~= RUN.LEASED)
    numbers = (f.seq or '') .. (f.fence or '') .. (f.tries or '') .. (f.left or '') .. (f.lease_until or '')
      .. (f.ready_at or '') .. (f.priority or '') .. (f.entries or '') .. (f.bytes or '') .. (f.cut or '')
      .. (f.handed or '')
  else
    whole = f.run and f.kind and f.audience
    numbers = (f.seq or '') .. (f.number or '') .. (f.deadline or '') .. (f.beat or '') .. (f.beat_by or '')
  end
  if not (whole and f.session and f.queue) then error({ 'corrupt', r.key, 'record with a part missing' }) end --@guard whole-record
  if string.find(numbers, '[^%d-]') then error({ 'corrupt', r.key, 'record with letters for a number' }) end --@guard numbers
end

-- One record (a packed map of texts) as a table `f` of its fields; shared by the items of a batch, so that two may meet.
-- Fields that this release does not know stay in it. One that is empty is not stored.
local function load(kind, id)
  local name = key(kind, id)
  local r = records[name]
  if r then return r end
  local packed = read('GET', name)
  r = { kind = kind, id = id, key = name, f = packed and unpacked(name, packed) or {}, exists = packed and true or false }
  records[name] = r
  types[name] = 'string'
  if packed then trust(r) end
  return r
end

-- The same for hashes that are maps of a session or a run: a field is read when it is asked for, since they may be long.
local function map(kind, id)
  local name = key(kind, id)
  local r = records[name]
  if r then return r end
  r = { key = name, fields = {}, changed = {} }
  records[name] = r
  return r
end

local function get(r, field)
  local value = r.fields[field]
  if value == nil then
    value = read('HGET', r.key, field)
    r.fields[field] = value
  end
  return value
end

-- Says that a record or a map is to be written.
local function touch(r)
  if r.touched then return end
  r.touched, r.exists = true, true
  touched[#touched + 1] = r
end

-- A field of a map. An empty one is taken out, and reads as absent (false, so that nobody looks again).
local function set(r, field, value)
  touch(r)
  need(r.key, 'hash')
  r.fields[field] = value ~= '' and value or false
  r.changed[field] = true
end

-- A text, or nil for an empty one: what a field of a record may be.
local function some(text) return text ~= '' and text or nil end

local function sum(text, by) return int((tonumber(text) or 0) + by) end

local function permitted(kind, operation, from, target)
  return MOVES[kind .. operation .. ' ' .. from .. ' ' .. target]
end

-- Takes a record to another state, as the table allows; a state of another version is refused, never guessed.
local function move(r, operation, target)
  local f = r.f
  local from = f.state or 'none'
  if not permitted(r.kind, operation, from, target) then error({ 'conflict', operation, from }) end
  f.state = target
  touch(r)
end

local function next_number()
  if not counter then counter = tonumber(read('GET', key(SEG.counter)) or '0') end
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

-- Writing ---------------------------------------------------------------------------------------------------------

local function save(r)
  local some, gone = {}, {}
  for field in pairs(r.changed) do
    local value = r.fields[field]
    if value then
      some[#some + 1] = field
      some[#some + 1] = value
    else
      gone[#gone + 1] = field
    end
  end
  if #some > 0 then redis_call('HSET', r.key, unpack(some)) end
  if #gone > 0 then redis_call('HDEL', r.key, unpack(gone)) end
  r.changed = {}
end

local function send(w)
  if w[1] ~= 'XADD' then return redis_call(unpack(w)) end
  local reply = redis_pcall(unpack(w))
  if type(reply) == 'table' then
    -- Another program used up the ids of the stream. A doorbell may be lost and a step may not.
    redis_call('DEL', w[2])
    reply = redis_call(unpack(w))
  end
  return reply
end

local function change(name, member, score)
  local found = members[name]
  if not found then
    found = {}
    members[name] = found
  end
  found[member] = score
end

local function commit()
  counted = counter
  if #bells > 0 then
    for n = 1, #bells do bells[n].of.f.bell = send(bells[n]) end
    bells = {}
  end
  for n = 1, #touched do
    local r = touched[n]
    r.touched = false
    if r.changed then save(r) else values[r.key] = r.packed or cmsgpack.pack(r.f) end
    r.packed = nil
  end
  if #puts > 0 then
    for n = 1, #puts, 2 do values[puts[n]] = puts[n + 1] end
    puts = {}
  end
  for n = 1, #changes, 3 do change(changes[n], changes[n + 1], changes[n + 2]) end
  for n = 1, #pending do
    local w = pending[n]
    if w[1] == 'DEL' then for place = 2, #w do values[w[place]] = nil end end
    local reply = send(w)
    -- The first entry of a history says when it is looked at.
    if w.first and reply == 1 then change(TAG .. SEG.retention, w.first, int(now + KEEP_HISTORY)) end
    -- A name that nobody listens under is that of a worker that is gone: the next one is woken.
    while w.wakes and reply and redis_call(PUBLISH, TAG .. SEG.wake .. reply, w.wakes) == 0 do reply = send(w) end
  end
  touched, changes, pending = {}, {}, {}
end

-- A command with any number of words.
local function long(command, name, list)
  for first = 1, #list, 1000 do
    redis_call(command, name, unpack(list, first, math.min(first + 999, #list)))
  end
end

-- Writes what the items so far have left for the end.
local function flush()
  if counted then values[TAG .. SEG.counter] = int(counted) end
  for name, found in pairs(members) do
    local add, drop, new = {}, {}, {}
    for member, score in pairs(found) do
      if score == 'set' then
        new[#new + 1] = member
      elseif score then
        add[#add + 1] = score
        add[#add + 1] = member
      else
        drop[#drop + 1] = member
      end
    end
    long('SADD', name, new)
    long('ZADD', name, add)
    long('ZREM', name, drop)
  end
  for name, at in pairs(named) do
    if redis_call('EXISTS', name) == 0 then redis_call('SREM', at[1], at[2]) end
  end
  local list = {}
  for name, value in pairs(values) do
    list[#list + 1] = name
    list[#list + 1] = value
  end
  for first = 1, #list, 1000 do redis_call('MSET', unpack(list, first, math.min(first + 999, #list))) end
  members, values, named = {}, {}, {}
end

-- Forgets what an item meant to change. What others wrote is read again.
local function forget()
  flush()
  records, types, counter, counted = {}, {}, nil, nil
  touched, bells, pending, changes, puts, unchecked = {}, {}, {}, {}, {}, {}
end

-- A fault of a script is that of a record, where it holds what is no text.
local function reason(fault)
  if type(fault) == 'table' and not fault.err then return fault end
  for name, r in pairs(records) do
    for field, value in pairs(r.f or {}) do
      if type(field) ~= 'string' or type(value) ~= 'string' then return { 'corrupt', name, 'record of another program' } end --@guard texts
    end
  end
  return { 'fault', tostring(type(fault) == 'table' and fault.err or fault) }
end

local function whole(decide)
  return function()
    local reply = decide()
    if #unchecked > 0 then check() end
    return reply
  end
end

local function each(decide)
  local replies, decided = {}, whole(decide)
  local through, fault = pcall(function()
    for n = 1, N do
      cursor = stop + 1
      stop = cursor + tonumber(ARGV[cursor])
      local fine, reply = pcall(decided)
      if fine then
        commit()
      else
        reply = reason(reply)
        forget()
      end
      replies[n] = reply
    end
  end)
  -- Also where the call breaks off: what its items before that did is whole.
  flush()
  if not through then error(fault, 0) end
  if stirred then redis_call(PUBLISH, TAG .. SEG.stir, '') end --@guard stir
  return replies
end

-- For sweeps: what is due but cannot be read keeps its place in the list of what is due, only not at the head, where it
-- would hold up all others. `kind` and `id` name that list, `member` its place in it.
local function unless_corrupt(kind, id, member, decide)
  local fine, reply = pcall(whole(decide))
  if fine then return reply end
  reply = reason(reply)
  if reply[1] ~= 'corrupt' then error(reply, 0) end
  forget()
  place(kind, id, member, int(now + KEEP_PARKED))
  return reply
end
