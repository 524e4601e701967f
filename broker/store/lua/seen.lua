-- seen: acknowledges an entry whose handler has returned, and notes that its audience has seen the interrupt. Safe to
-- repeat.
-- KEYS  interrupts; per item: unseen of the audience
-- ARGV  per item: size, group, entry, interrupt, audience (empty: the entry is for another group, only acknowledge)
-- Reply per item: ok
return each(function()
  local group, entry, interrupt, audience = args()
  write('XACK', SEG.interrupts, nil, group, entry)
  if audience ~= '' then place(SEG.unseen, audience, interrupt, false) end
  return { 'ok' }
end)
