-- Puts a crawl on the board, or takes it off, and wakes everybody.
local id, text, cap, used = take(), take(), take(), num()
if text == '' then
	call('HDEL', B .. ':crawls', id)
	call('HDEL', B .. ':cap', id)
	call('DEL', B .. ':r:' .. id, B .. ':rx:' .. id, B .. ':rp:' .. id)
else
	call('HSET', B .. ':crawls', id, text)
	call('HSET', B .. ':cap', id, cap)
	if used > tonumber(call('HGET', B .. ':spent', id) or 0) then call('HSET', B .. ':spent', id, used) end
end
call('PUBLISH', string.match(B, '^(.*){') .. 'free', '1')
return 1
