-- Keeps a worker's report about a crawl for a while, or removes it.
local id, worker, text, ttl = take(), take(), take(), num()
local texts, expiries = B .. ':r:' .. id, B .. ':rx:' .. id
if ttl <= 0 then
	call('HDEL', texts, worker)
	call('ZREM', expiries, worker)
	return 0
end
call('HSET', texts, worker, text)
call('ZADD', expiries, now + ttl, worker)
call('PEXPIRE', texts, 2 * ttl)
call('PEXPIRE', expiries, 2 * ttl)
return 1
