-- Puts a crawl on the board, or takes it off, and wakes everybody.
local id, text, cap = take(), take(), take()
if text == '' then
	call('HDEL', B .. ':crawls', id)
	call('HDEL', B .. ':cap', id)
	call('HDEL', B .. ':spent', id)
	call('DEL', B .. ':r:' .. id, B .. ':rx:' .. id, B .. ':rp:' .. id)
else
	call('HSET', B .. ':crawls', id, text)
	call('HSET', B .. ':cap', id, cap)
end
call('PUBLISH', string.match(B, '^(.*){') .. 'free', '1')
return 1
