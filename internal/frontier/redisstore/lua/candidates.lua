-- Groups with work that nobody holds, longest free first, with the
-- milliseconds they have been free.
local offset, limit, most, ttl = num(), num(), num(), num()
local more = reap(most, ttl)
local out = {}
local list = call('ZRANGEBYSCORE', B .. ':f', '-inf', '+inf', 'WITHSCORES', 'LIMIT', offset, limit)
for i = 1, #list, 2 do
	if wanted(list[i]) then
		out[#out + 1] = list[i]
		out[#out + 1] = now - tonumber(list[i + 1])
	else -- its crawls were switched off; on.lua brings it back
		call('ZREM', B .. ':f', list[i])
	end
end
return {more, out}
