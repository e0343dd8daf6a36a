-- All reports about a crawl that stand, and if wanted the pictures by worker.
local id, wanted = take(), take()
local texts, expiries, pictures = B .. ':r:' .. id, B .. ':rx:' .. id, B .. ':rp:' .. id
for _, worker in ipairs(call('ZRANGEBYSCORE', expiries, '-inf', now)) do
	call('HDEL', texts, worker)
	call('HDEL', pictures, worker)
	call('ZREM', expiries, worker)
end
return {call('HVALS', texts), wanted == '1' and call('HGETALL', pictures) or {}}
