-- Takes up to n pages of a crawl's budget, or gives -n back. A cap of 0 is none;
-- of a crawl that is not on the board nobody knows it, so nothing is granted.
local id, n = take(), num()
local cap = tonumber(call('HGET', B .. ':cap', id) or -1)
local spent = tonumber(call('HGET', B .. ':spent', id) or 0)
if n > 0 and cap ~= 0 then n = math.max(math.min(n, cap - spent), 0) end
if n < 0 then n = -math.min(-n, spent) end
if n ~= 0 then call('HSET', B .. ':spent', id, spent + n) end
return {n, spent + n}
