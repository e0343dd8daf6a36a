-- Leases groups to a session, which begins with its first lease. Returns nil
-- if the session had begun and was reaped.
local session, begun, ttl = take(), take(), num()
if begun == '1' and not known(session) then return false end
call('ZADD', B .. ':x', 'GT', now + ttl, session)
local n = num()
local token = tick(0, n)
local out = {}
for i = 1, n do
	local group = take()
	-- it may have been chosen long ago: its crawl may be held or over by now
	if call('ZSCORE', B .. ':f', group) and call('HEXISTS', B .. ':o', group) == 0 then
		call('HSET', B .. ':o', group, string.format('%.0f', token + i) .. ' ' .. session)
		call('SADD', B .. ':h:' .. session, group)
		call('ZREM', B .. ':f', group)
		out[#out + 1] = group
		out[#out + 1] = token + i
		counts(group, out)
	end
end
return out
