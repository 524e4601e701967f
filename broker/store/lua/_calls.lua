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
