-- All reports about a crawl that stand.
local id = take()
local texts, expiries = B .. ':r:' .. id, B .. ':rx:' .. id
for _, worker in ipairs(call('ZRANGEBYSCORE', expiries, '-inf', now)) do
	call('HDEL', texts, worker)
	call('ZREM', expiries, worker)
end
return call('HVALS', texts)
