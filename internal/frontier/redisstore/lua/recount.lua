-- Sets what was spent, if nobody spent since.
local id, expected, spent = take(), take(), take()
if (call('HGET', B .. ':spent', id) or '0') ~= expected then return 0 end
call('HSET', B .. ':spent', id, spent)
return 1
