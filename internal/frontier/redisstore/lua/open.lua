-- Opens a crawl; answers 0 if it is being dropped, which has to end first. The
-- run of a Redis without a log is noted: after its end nothing can be trusted.
local id, volatile = take(), take()
if call('HEXISTS', B .. ':z', id) == 1 then return 0 end
if call('HSETNX', B .. ':c:' .. id, 'b', PARTS) == 1 then
	call('HSET', B .. ':c:' .. id, 's', 0, 'n', 0, 'v', 0)
	if volatile == '1' then call('HSET', B .. ':c:' .. id, 'r', run()) end
end
return 1
