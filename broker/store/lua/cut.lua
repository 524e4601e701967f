-- cut: a checkpoint takes the place of the entries so far. Entries begun and not ended, and calls that wait, stay. Safe
-- to repeat with the same number.
-- KEYS  per item: run, calls, journal
-- ARGV  per item: size, run, fence, nonce, number of the cut, checkpoint
-- Reply per item: ok | stale_lease | conflict
--@use _runs
local function drop(kind, id, fields)
  for first = 1, #fields, 1000 do write('HDEL', kind, id, unpack(fields, first, math.min(first + 999, #fields))) end
end

return each(function()
  local id, fence, nonce, number, checkpoint = args()
  local r = load(SEG.run, id)
  local f = r.f
  if not holds(r, fence, nonce) then return { 'stale_lease', f.state or '' } end
  if f.cut == number then return { 'ok' } end --@guard cut-once
  if tonumber(number) ~= tonumber(f.cut or '0') + 1 then return { 'conflict', 'cut', f.cut or '0' } end --@guard cut-order
  local gone, parts = {}, {}
  local packed = read('HGETALL', key(SEG.calls, id))
  for n = 1, #packed, 2 do
    if string.match(packed[n + 1], '^%S+') == CALL.RESOLVED then --@guard cut-begun
      gone[#gone + 1] = packed[n]
      for _, part in ipairs({ 'r ', 'h ', 't ' }) do parts[#parts + 1] = part .. packed[n] end
    end --@guard cut-begun
  end
  -- Places are counted anew.
  for _, name in ipairs(read('HKEYS', key(SEG.journal, id)) or {}) do
    if string.sub(name, 1, 2) == 'p ' then parts[#parts + 1] = name end --@guard cut-places
  end
  drop(SEG.calls, id, gone)
  drop(SEG.journal, id, parts)
  write('HSET', SEG.journal, id, 'checkpoint', checkpoint)
  f.cut, f.entries, f.bytes = number, nil, nil
  touch(r)
  return { 'ok' }
end)
