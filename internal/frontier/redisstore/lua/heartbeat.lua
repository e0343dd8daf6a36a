-- The list of workers: enters or removes one, forgets those that fell silent,
-- returns the others.
local id, text, ttl = take(), take(), num()
if ttl > 0 then
	call('HSET', B .. ':w', id, text)
	call('ZADD', B .. ':b', now + ttl, id)
else
	call('ZADD', B .. ':b', 0, id)
end
for _, dead in ipairs(call('ZRANGEBYSCORE', B .. ':b', '-inf', now)) do
	call('HDEL', B .. ':w', dead)
	call('ZREM', B .. ':b', dead)
end
return call('HVALS', B .. ':w')
