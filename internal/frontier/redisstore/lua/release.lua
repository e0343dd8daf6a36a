-- Gives groups back whose token is still the session's.
local session = take()
for _ = 1, num() do
	local group, token = take(), take()
	if call('HGET', B .. ':o', group) == token .. ' ' .. session then
		call('HDEL', B .. ':o', group)
		call('SREM', B .. ':h:' .. session, group)
		call('ZREM', B .. ':d:' .. session, group)
		free(group)
	end
end
return 1
