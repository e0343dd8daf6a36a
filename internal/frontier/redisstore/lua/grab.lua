-- Leases one group to a session, with or without work. Returns nil if the
-- session was reaped, and nothing if somebody else holds the group.
local session, begun, ttl, group = take(), take(), num(), take()
reap(1000, ttl)
if begun == '1' and not known(session) then return false end
local out = {}
if call('HEXISTS', B .. ':o', group) == 1 then return out end
call('ZADD', B .. ':x', 'GT', now + ttl, session)
local token = tick(0, 1)
call('HSET', B .. ':o', group, string.format('%.0f', token + 1) .. ' ' .. session)
call('SADD', B .. ':h:' .. session, group)
call('ZREM', B .. ':f', group)
out[1] = group
out[2] = token + 1
counts(group, out)
return out
