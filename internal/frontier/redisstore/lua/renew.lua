-- Extends a session. Returns how many groups it holds and those to which
-- others added work after a version that the caller has already heard of; nil
-- if the session has expired and was reaped. The caller names the version in its next call: what
-- a lost reply said is said again.
local session, ttl, heard, limit, most = take(), num(), num(), num(), num()
if not known(session) then
	reap(most, ttl)
	return false
end
call('ZADD', B .. ':x', 'GT', now + ttl, session)
reap(most, ttl)
local dirty = B .. ':d:' .. session
call('ZREMRANGEBYSCORE', dirty, '-inf', heard)
local list = call('ZRANGEBYSCORE', dirty, '(' .. string.format('%.0f', heard), '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
call('HDEL', B .. ':t', session)
local out = {}
for i = 1, #list, 2 do
	local owner = call('HGET', B .. ':o', list[i])
	heard = tonumber(list[i + 1])
	if owner then
		out[#out + 1] = list[i]
		out[#out + 1] = tonumber(string.match(owner, '^%d+'))
		counts(list[i], out)
	end
end
local more = #list == 2 * limit and 1 or 0
-- One commit marks several groups with one version: the last may be cut in two.
return {call('SCARD', B .. ':h:' .. session), heard - more, more, out}
