-- What is recorded of the calls of a run, for the scripts that begin, settle and end them.

-- A call record is one short string in the hash of its run: state, attempt, digest, interrupt, fence of the lease that
-- began it; '-' stands for what there is none of.
local function call_in(calls, call)
  local packed = get(calls, call)
  if not packed then return 'none', '0', '-', '', '-' end
  local state, attempt, digest, interrupt, fence = string.match(packed, '^(%S+) (%d+) (%S+) (%S+) (%S+)$')
  if not state then error({ 'corrupt', calls.key, 'hash with a call record of another form' }) end
  return state, attempt, digest, interrupt ~= '-' and interrupt or '', fence
end

local function call_record(run, call) return call_in(map(SEG.calls, run), call) end

local function note_call(run, call, operation, state, digest, interrupt, attempt, fence)
  local calls = map(SEG.calls, run)
  local was, before = call_in(calls, call)
  if not permitted(SEG.calls, operation, was, state) then return false end
  set(calls, call, state .. ' ' .. (attempt or before) .. ' ' .. digest .. ' ' .. (some(interrupt) or '-') .. ' ' .. (fence or '-'))
  return true
end
