-- Decides, in the shard where a URL belongs, which group's shard may queue it:
-- the first that asks. Returns that group for each URL, nil if it was seen.
local out = {}
for i = 1, num() do
	local id, place, member, fp, group = take(), num(), take(), take(), take()
	local c = open(id)
	if not c then return redis.error_reply('CLOSED ' .. id) end
	out[i] = false
	if call('SISMEMBER', bucket(c, place), member) == 0 then
		local claims = B .. ':p:' .. id
		if call('HSETNX', claims, fp, group) == 0 then group = call('HGET', claims, fp) end
		out[i] = group
	end
end
return out
