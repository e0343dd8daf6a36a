-- The list of workers: enters or removes one, forgets those that fell silent,
-- returns the others, each behind the milliseconds since its last heartbeat.
local id, text, ttl = take(), take(), num()
if ttl > 0 then
	call('HSET', B .. ':w', id, now .. ' ' .. text)
	call('ZADD', B .. ':b', now + ttl, id)
else
	call('ZADD', B .. ':b', 0, id)
end
for _, dead in ipairs(call('ZRANGEBYSCORE', B .. ':b', '-inf', now)) do
	call('HDEL', B .. ':w', dead)
	call('ZREM', B .. ':b', dead)
end
local list = call('HVALS', B .. ':w')
for i, w in ipairs(list) do
	local beat, said = string.match(w, '^(%d+) (.*)$')
	list[i] = (now - (beat or now)) .. ' ' .. (said or w) -- an older tiptoe wrote no time
end
return list
