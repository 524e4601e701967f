-- What is recorded of the calls of a run, for the scripts that begin, settle and end them.

-- A call record is one short string in the hash of its run: state, interrupt, attempt, digest, fence of the lease that
-- began it; '-' stands for what there is none of. One that was never begun and waits for its question has the first two:
-- its digest is that of the question's action (empty here), and so short a string keeps the hash small.
local function call_in(calls, call)
  local packed = get(calls, call)
  if not packed then return 'none', '0', '-', '', '-' end
  local state, interrupt, attempt, digest, fence = string.match(packed, '^(%S+) (%S+) (%d+) (%S+) (%S+)$')
  if not state then
    state, interrupt = string.match(packed, '^(%S+) (%S+)$')
    attempt, digest, fence = '0', '', '-'
  end
  if not state then error({ 'corrupt', calls.key, 'hash with a call record of another form' }) end
  return state, attempt, digest, interrupt ~= '-' and interrupt or '', fence
end

local function call_record(run, call) return call_in(map(SEG.calls, run), call) end

-- Where an entry that is known by its place stands in the journal: nil where it may, else the digest of what was there
-- before it: a step, or a call of another tool. The names of such calls hold their tool, so their places are kept too.
local function taken(run, place, entry)
  if place == '' then return nil end
  local step = '\31' .. place
  local digest, there = string.match(read('HGET', key(SEG.journal, run), 'p ' .. place) or '', '^(%S+) (.*)$')
  if there and there ~= entry then return digest end --@guard place-tool
  if entry == step then return nil end
  local state, _, made = call_record(run, step)
  if state ~= 'none' then return made end --@guard place-kind
  return nil
end

local function note_place(run, place, entry, digest)
  if place == '' or entry == '\31' .. place then return end
  write('HSET', SEG.journal, run, 'p ' .. place, digest .. ' ' .. entry)
end

local function note_call(run, call, operation, state, digest, interrupt, attempt, fence)
  local calls = map(SEG.calls, run)
  local was, before = call_in(calls, call)
  if not permitted(SEG.calls, operation, was, state) then return false end
  attempt = attempt or before
  local record = state .. ' ' .. (some(interrupt) or '-')
  if state ~= CALL.AWAITING_CONFIRMATION or attempt ~= '0' then
    record = record .. ' ' .. attempt .. ' ' .. digest .. ' ' .. (fence or '-')
  end
  set(calls, call, record)
  return true
end
