-- Counts what a crawl has to do here, for a Redis without a log: nil if it is
-- not open, or was opened before the server's last start.
local c = call('HMGET', B .. ':c:' .. take(), 'n', 'v', 'r')
if not c[1] or c[3] and c[3] ~= run() then return false end
return {c[1], c[2]}
