-- One page of a crawl's queues after a group's name, in order of names.
local id, from, limit = take(), take(), num()
local out = {}
for _, group in ipairs(call('ZRANGEBYLEX', B .. ':i:' .. id, from, '+', 'LIMIT', 0, limit)) do
	out[#out + 1] = group
	out[#out + 1] = call('ZCARD', B .. ':q:' .. id .. ':' .. group)
end
return out
