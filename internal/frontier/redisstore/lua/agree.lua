-- Says how a worker groups hosts. Returns how the workers that are there do;
-- where nobody else is there, they do as this one says.
local id, text = take(), take()
local had = call('GET', B .. ':grouping')
if had and had ~= text then
	for _, other in ipairs(call('ZRANGEBYSCORE', B .. ':b', '(' .. now, '+inf')) do
		if other ~= id then return had end
	end
end
if had ~= text then call('SET', B .. ':grouping', text) end
return text
