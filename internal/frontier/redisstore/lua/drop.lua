-- Deletes a part of a crawl; answers 1 while there is more.
local id, begin, limit = take(), take(), num()
local c = open(id)
if c and begin == '1' then
	-- From here on nobody can add to it.
	call('HSET', B .. ':z', id, c.b)
	call('DEL', c.key)
end
local left = tonumber(call('HGET', B .. ':z', id) or -1)
if left < 0 then return 0 end
local groups = call('ZRANGE', B .. ':i:' .. id, 0, limit - 1)
for _, group in ipairs(groups) do
	call('UNLINK', B .. ':q:' .. id .. ':' .. group)
	call('ZREM', B .. ':i:' .. id, group)
	call('SREM', B .. ':k:' .. group, id)
	if call('EXISTS', B .. ':k:' .. group) == 0 then call('ZREM', B .. ':f', group) end
end
if #groups == limit then return 1 end
local stop = math.max(left - limit, 0)
for h = stop, left - 1 do call('UNLINK', B .. ':s:' .. id .. ':' .. h) end
if stop > 0 then
	call('HSET', B .. ':z', id, stop)
	return 1
end
call('UNLINK', B .. ':a:' .. id, B .. ':p:' .. id)
call('HDEL', B .. ':z', id)
call('HDEL', B .. ':spent', id)
call('SREM', B .. ':off', id)
return 0
