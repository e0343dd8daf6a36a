-- What a session holds: groups and tokens.
local session = take()
local out = {}
for _, group in ipairs(call('SMEMBERS', B .. ':h:' .. session)) do
	local owner = call('HGET', B .. ':o', group)
	out[#out + 1] = group
	out[#out + 1] = tonumber(string.match(owner or '0 ', '^%d+'))
end
return out
