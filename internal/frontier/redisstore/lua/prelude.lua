-- Stands before every script. All keys a script touches begin with KEYS[1],
-- the hash tag of one shard.
local B = KEYS[1]
local call = redis.call
local PARTS = 1024 -- parts of a seen set; each grows by whole buckets
local LOAD = 200   -- URLs a bucket holds on average; twice that stays an integer set

local at = 0
local function take() at = at + 1; return ARGV[at] end
local function num() at = at + 1; return tonumber(ARGV[at]) end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- run names this run of the server.
local function run() return string.match(call('INFO', 'server'), 'run_id:(%x+)') end

-- tick moves the shard's clock, which numbers entries, tokens and versions. It
-- never repeats, and after a call no caller that has read it is behind.
local function tick(atleast, span)
	local clock = tonumber(call('HGET', B .. ':m', 'clock') or 0)
	local base = math.max(clock + 1, atleast)
	call('HSET', B .. ':m', 'clock', base + span)
	return base, base + span
end

-- counts appends to out how many crawls wait in a group, and each with its length.
local function counts(group, out)
	local crawls = call('SMEMBERS', B .. ':k:' .. group)
	out[#out + 1] = #crawls
	for _, id in ipairs(crawls) do
		out[#out + 1] = tonumber(id)
		out[#out + 1] = call('ZCARD', B .. ':q:' .. id .. ':' .. group)
	end
end

-- wanted says whether a group has work of a crawl that is on.
local function wanted(group)
	if call('EXISTS', B .. ':off') == 0 then return call('EXISTS', B .. ':k:' .. group) == 1 end
	for _, id in ipairs(call('SMEMBERS', B .. ':k:' .. group)) do
		if call('SISMEMBER', B .. ':off', id) == 0 then return true end
	end
	return false
end

-- free lets anybody lease a group, if it has work.
local function free(group)
	if wanted(group) and call('ZADD', B .. ':f', 'NX', now, group) == 1
		and call('ZCARD', B .. ':f') == 1 then
		call('PUBLISH', string.match(B, '^(.*){') .. 'free', '1')
	end
end

-- tell lets the holder of a group count its queues anew.
local function tell(holder, group, clock)
	call('ZADD', B .. ':d:' .. holder, clock, group)
	if call('HSETNX', B .. ':t', holder, 1) == 1 then
		call('PUBLISH', string.match(B, '^(.*){') .. 'wake:' .. string.match(holder, '([^/]*)/%d+$'), '1')
	end
end

-- known says whether a session holds what it was given. One that expired still
-- does until somebody begins to reap it.
local function known(session) return tonumber(call('ZSCORE', B .. ':x', session) or 0) > 0 end

-- calm says whether sessions that expired are to be left alone for now. When
-- nobody was heard for so long that leases ran out (they are renewed three times
-- in their length), Redis was away from all, and those who are back first would
-- take the groups of those who come a moment later.
local function calm(ttl)
	local said = call('HMGET', B .. ':m', 'heard', 'calm')
	local heard, till = tonumber(said[1] or now), tonumber(said[2] or 0)
	if now - heard > 2 * ttl / 3 then till = now + math.floor(math.min(ttl / 2, 12000)) end
	call('HSET', B .. ':m', 'heard', now, 'calm', till)
	return now < till
end

-- reap frees up to limit groups of sessions that expired, and says whether
-- there may be more.
local function reap(limit, ttl)
	if calm(ttl) then return 0 end
	while limit > 0 do
		local dead = call('ZRANGEBYSCORE', B .. ':x', '-inf', now, 'LIMIT', 0, 1)[1]
		if not dead then return 0 end
		local groups = call('SPOP', B .. ':h:' .. dead, limit)
		for _, group in ipairs(groups) do
			call('HDEL', B .. ':o', group)
			free(group)
		end
		limit = limit - #groups
		if limit > 0 then
			call('UNLINK', B .. ':d:' .. dead)
			call('HDEL', B .. ':t', dead)
			call('ZREM', B .. ':x', dead)
		else
			call('ZADD', B .. ':x', 0, dead) -- some of it is another's by now: it does not come back
		end
	end
	return 1
end

-- The seen set of a crawl in a shard is a linear hash table: PARTS buckets at
-- first, one more whenever the load passes LOAD. A member is a 64-bit number;
-- its last nine decimal digits, which survive Lua's numbers, are its row. The
-- caller gives place = part + PARTS * row. c.b counts buckets, c.size is the
-- largest PARTS * 2^k that is not above it.
local function bucket(c, place)
	local h = place % (2 * c.size)
	if h >= c.b then h = place % c.size end
	return c.seen .. h
end

local function open(id)
	local state = call('HMGET', B .. ':c:' .. id, 'b', 's')
	if not state[1] then return nil end
	local c = {id = id, key = B .. ':c:' .. id, seen = B .. ':s:' .. id .. ':',
		b = tonumber(state[1]), s = tonumber(state[2]), size = PARTS, new = 0, n = 0}
	while 2 * c.size <= c.b do c.size = 2 * c.size end
	return c
end

-- grow splits buckets until the load is right, and writes the table's size.
local function grow(c)
	if c.new == 0 then return end
	c.s = c.s + c.new
	while c.s > LOAD * c.b do
		local from, to = c.seen .. (c.b - c.size), c.seen .. c.b
		local rows, moved = c.size / PARTS, {}
		for _, m in ipairs(call('SMEMBERS', from)) do
			local row = math.abs(tonumber(string.sub(m, -9)))
			if row % (2 * rows) >= rows then moved[#moved + 1] = m end
		end
		for i = 1, #moved, 1000 do
			local last = math.min(i + 999, #moved)
			call('SADD', to, unpack(moved, i, last))
			call('SREM', from, unpack(moved, i, last))
		end
		c.b = c.b + 1
		if c.b == 2 * c.size then c.size = 2 * c.size end
	end
	call('HSET', c.key, 'b', c.b, 's', c.s)
end
