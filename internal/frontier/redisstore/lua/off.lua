-- Offers no more work of a crawl; what is leased stays leased.
local id = take()
if call('EXISTS', B .. ':c:' .. id) == 1 then call('SADD', B .. ':off', id) end
return 1
