-- Keeps a worker's report about a crawl for a while, or removes it.
local id, worker, text, picture, ttl = take(), take(), take(), take(), num()
local texts, expiries, pictures = B .. ':r:' .. id, B .. ':rx:' .. id, B .. ':rp:' .. id
if ttl <= 0 then
	call('HDEL', texts, worker)
	call('HDEL', pictures, worker)
	call('ZREM', expiries, worker)
	return 0
end
call('HSET', texts, worker, text)
call('ZADD', expiries, now + ttl, worker)
call('PEXPIRE', texts, 2 * ttl)
call('PEXPIRE', expiries, 2 * ttl)
if picture ~= '' then -- or the last one stays
	call('HSET', pictures, worker, picture)
	call('PEXPIRE', pictures, 2 * ttl)
end
return 1
