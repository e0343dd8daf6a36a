-- Says how a worker groups hosts and which ledger it has. Returns both as the
-- fleet has them; where nobody else is there, it groups as this one says, and
-- where nobody ever was, its ledger is this one's.
local id, grouping, ledger = take(), take(), take()
local had, books = call('GET', B .. ':grouping'), call('GET', B .. ':ledger')
if books and books ~= ledger then return {had or grouping, books} end
if had and had ~= grouping then
	for _, other in ipairs(call('ZRANGEBYSCORE', B .. ':b', '(' .. now, '+inf')) do
		if other ~= id then return {had, books or ledger} end
	end
end
if had ~= grouping then call('SET', B .. ':grouping', grouping) end
if not books then call('SET', B .. ':ledger', ledger) end
return {grouping, ledger}
