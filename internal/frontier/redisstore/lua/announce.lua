-- Puts a crawl on the board, or takes it off, and wakes everybody. Answers 0 to
-- whoever does not supervise it (any more).
local id, text, by, first, cap, used = take(), take(), take(), take(), take(), num()
local there = call('HGET', B .. ':crawls', id)
local owner = there and cjson.decode(there)['by']
if text == '' then
	if owner and owner ~= by then return 0 end
	call('HDEL', B .. ':crawls', id)
	call('HDEL', B .. ':cap', id)
	call('DEL', B .. ':r:' .. id, B .. ':rx:' .. id, B .. ':rp:' .. id)
else
	if first ~= '1' and owner ~= by then return 0 end
	call('HSET', B .. ':crawls', id, text)
	call('HSET', B .. ':cap', id, cap)
	if used > tonumber(call('HGET', B .. ':spent', id) or 0) then call('HSET', B .. ':spent', id, used) end
end
call('PUBLISH', string.match(B, '^(.*){') .. 'free', '1')
return 1
