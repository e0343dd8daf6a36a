-- Offers a crawl's work again: one page of its groups after a name. Answers with
-- the last name, nil at the end. If it was not on before, whoever holds a group
-- for other crawls is told.
local id, from, limit, new = take(), take(), num(), take()
call('SREM', B .. ':off', id)
local groups = call('ZRANGEBYLEX', B .. ':i:' .. id, from, '+', 'LIMIT', 0, limit)
local clock
for _, group in ipairs(groups) do
	local owner = call('HGET', B .. ':o', group)
	if not owner then
		free(group)
	elseif new == '1' then
		clock = clock or tick(0, 1)
		tell(string.match(owner, ' (.*)$'), group, clock)
	end
end
if #groups < limit then return false end
return groups[#groups]
