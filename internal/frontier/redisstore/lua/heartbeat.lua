-- The list of workers: enters or removes one, forgets those that fell silent.
-- Returns the time in microseconds, the worker's number and the others, each
-- behind the milliseconds since its last heartbeat.
local id, text, ttl = take(), take(), num()
call('ZADD', B .. ':b', ttl > 0 and now + ttl or 0, id)
for _, dead in ipairs(call('ZRANGEBYSCORE', B .. ':b', '-inf', now)) do
	call('HDEL', B .. ':w', dead)
	call('HDEL', B .. ':wn', dead)
	call('ZREM', B .. ':b', dead)
end
local number
if ttl > 0 then
	call('HSET', B .. ':w', id, now .. ' ' .. text)
	number = call('HGET', B .. ':wn', id)
	if not number then
		local used = {}
		for _, n in ipairs(call('HVALS', B .. ':wn')) do used[n] = true end
		local n = 0
		while used[tostring(n)] do n = n + 1 end
		number = tostring(n)
		call('HSET', B .. ':wn', id, number)
	end
end
local out = call('HVALS', B .. ':w')
for i, w in ipairs(out) do
	local beat, said = string.match(w, '^(%d+) (.*)$')
	out[i] = (now - (beat or now)) .. ' ' .. (said or w) -- an older tiptoe wrote no time
end
table.insert(out, 1, number or '0')
table.insert(out, 1, string.format('%.0f', time[1] * 1000000 + time[2]))
return out
