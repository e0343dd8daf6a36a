-- Adds, marks, updates, acknowledgements and notes of one shard.
-- Returns the shard's clock, a number for each add (0: not new), and the
-- groups that were fenced.
local hint, span, session, shard = num(), num(), take(), num()

local crawls = {}
for _ = 1, num() do
	local id = take()
	crawls[id] = open(id)
	if not crawls[id] then return redis.error_reply('CLOSED ' .. id) end
end
local base, clock = tick(hint, span)

-- announce tells the holder of a group, or those without work, of an addition.
-- A group that nobody holds and that had work before is free already.
local function announce(group, first)
	local owner = call('HGET', B .. ':o', group)
	if not owner then return first and free(group) end
	local holder = string.match(owner, ' (.*)$')
	if holder ~= session then tell(holder, group, clock) end
end

local ids = {}
for _ = 1, num() do
	local id, group = take(), take()
	local c, queue = crawls[id], B .. ':q:' .. id .. ':' .. group
	local batch = {}
	for _ = 1, num() do
		local offset, place, member, value = num(), num(), take(), take()
		local new = call('SADD', bucket(c, place), member)
		c.new = c.new + new
		local again
		if offset < 0 then
			-- Queued although it was seen, unless a release of before still waits.
			offset, again = -1 - offset, take() .. group
			local pos = call('HGET', B .. ':a:' .. id, again)
			new = (not pos or call('ZLEXCOUNT', queue, '[' .. pos, '(' .. pos .. '\255') == 0) and 1 or 0
		end
		local number = 0
		if new == 1 then
			number = base + offset
			local full = number * 256 + shard
			local pos = string.sub(value, 1, 1) .. struct.pack('>I4I4', math.floor(full / 4294967296), full % 4294967296)
			batch[#batch + 1] = 0
			batch[#batch + 1] = pos .. string.sub(value, 2)
			if again then call('HSET', B .. ':a:' .. id, again, pos) end
		end
		ids[#ids + 1] = number
	end
	if #batch > 0 then
		call('ZADD', queue, unpack(batch))
		c.n, c.changed = c.n + #batch / 2, true
		local first = call('ZCARD', queue) == #batch / 2
		if first then
			call('ZADD', B .. ':i:' .. id, 0, group)
			call('SADD', B .. ':k:' .. group, id)
		end
		announce(group, first)
	end
end

for _ = 1, num() do
	local id, place, member, claim = take(), num(), take(), take()
	local c = crawls[id]
	c.new = c.new + call('SADD', bucket(c, place), member)
	if claim ~= '' then call('HDEL', B .. ':p:' .. id, claim) end
end

-- Whom a group names as its holder, nobody followed: also when its lease has
-- run out, what it says is the last word.
local fenced = {}
for _ = 1, num() do
	local group, token = take(), take()
	local ours = token == '*' or call('HGET', B .. ':o', group) == token .. ' ' .. session
	if not ours then fenced[#fenced + 1] = group end
	for _ = 1, num() do
		local id = take()
		local queue, gone = B .. ':q:' .. id .. ':' .. group, 0
		for _ = 1, num() do
			local pos, value = take(), take()
			if ours and call('ZREMRANGEBYLEX', queue, '[' .. pos, '(' .. pos .. '\255') == 1 then
				call('ZADD', queue, 0, pos .. value)
			end
		end
		for _ = 1, num() do
			local pos = take()
			if ours then gone = gone + call('ZREMRANGEBYLEX', queue, '[' .. pos, '(' .. pos .. '\255') end
		end
		if gone > 0 then
			crawls[id] = crawls[id] or open(id)
			local c = crawls[id]
			if c then c.n, c.changed = c.n - gone, true end
			if call('EXISTS', queue) == 0 then
				call('ZREM', B .. ':i:' .. id, group)
				call('SREM', B .. ':k:' .. group, id)
				if call('EXISTS', B .. ':k:' .. group) == 0 then call('ZREM', B .. ':f', group) end
			end
		end
	end
	for _ = 1, num() do
		local name, there, value = take(), take(), take()
		if ours then
			if there == '1' then call('HSET', B .. ':n:' .. group, name, value)
			else call('HDEL', B .. ':n:' .. group, name) end
		end
	end
end

for _, c in pairs(crawls) do
	grow(c)
	if c.changed then
		call('HINCRBY', c.key, 'n', c.n)
		call('HSET', c.key, 'v', clock)
	end
end
return {clock, ids, fenced}
