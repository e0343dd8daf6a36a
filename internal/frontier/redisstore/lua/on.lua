-- Offers a crawl's work again: one page of its groups after a name. Answers with
-- the last name, nil at the end.
local id, from, limit = take(), take(), num()
call('SREM', B .. ':off', id)
local groups = call('ZRANGEBYLEX', B .. ':i:' .. id, from, '+', 'LIMIT', 0, limit)
for _, group in ipairs(groups) do
	if call('HEXISTS', B .. ':o', group) == 0 then free(group) end
end
if #groups < limit then return false end
return groups[#groups]
