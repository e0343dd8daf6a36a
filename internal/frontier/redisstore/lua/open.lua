-- Opens a crawl; answers 0 if it is being dropped, which has to end first.
local id = take()
if call('HEXISTS', B .. ':z', id) == 1 then return 0 end
if call('HSETNX', B .. ':c:' .. id, 'b', PARTS) == 1 then
	call('HSET', B .. ':c:' .. id, 's', 0, 'n', 0, 'v', 0)
end
return 1
