-- needs: arguments, pattern_keys, replies
-- sb_ids: hands out a node number and a range of time in which its holder alone makes ids; or gives the node back.
-- No two ranges of a node ever overlap: each begins where the one before ended, whatever the clock says and whoever asks.
-- KEYS:    1 root of the generator
-- ARGV:    1 claim | release · 2 token of the holder · 3 node that it holds, or '' · 4 lease (ms, 100 to 3600000; with
--          claim) · 5 now (ms since the epoch, or ''; with claim)
-- Returns: {OK, 1, node, from ms, until ms, now ms}: the range is [from, until) · {OK, 0, ms until a node is free: all are
--          held} · {OK, released 0|1} · {BADARG, why} · {FAULT, why}
-- Notifies: nothing
-- Cost:    O(log nodes), and one INFO
local NODES = 1024
local EPOCH, END = 1704067200000, 1704067200000 + 2 ^ 41 -- ms: 2024-01-01, and where 41 bits end, in 2093
local MIN_LEASE, MAX_LEASE = 100, 3600000
local MAX_TOKEN = 64

local function read(ARGV)
    local call = { kind = ARGV[1] or '', token = ARGV[2] or '', node = ARGV[3] or '' }
    if call.kind ~= 'claim' and call.kind ~= 'release' then return nil, 'the kinds are claim and release' end
    if #call.token < 1 or #call.token > MAX_TOKEN then return nil, 'a token has 1 to ' .. MAX_TOKEN .. ' bytes' end
    local node = call.node ~= '' and arguments.parse_count(call.node, 0, NODES - 1)
    if call.node ~= '' and not node then return nil, 'node is a whole number from 0 to ' .. NODES - 1 end
    if node then call.node = string.format('%d', node) end
    if call.kind == 'release' then return call end
    call.lease = arguments.parse_count(ARGV[4], MIN_LEASE, MAX_LEASE)
    if not call.lease then return nil, 'lease is in ms, a whole number from ' .. MIN_LEASE .. ' to ' .. MAX_LEASE end
    local bad = arguments.check('', '', '', '', ARGV[5] or '')
    if bad then return nil, bad end
    call.now = arguments.read_now(ARGV[5])
    return call
end

-- Changes whenever another process answers in this one's name: after a restart, and after a failover.
local function incarnation()
    local told = redis.pcall('INFO', 'server')
    return type(told) == 'string' and string.match(told, 'run_id:(%w+)') or 'unknown'
end

-- The ms that a key holds, or nil for what is none.
local function ending(text)
    local at = tonumber(text or '')
    return at and at % 1 == 0 and at >= 0 and at <= END and at or nil
end

-- Where ranges may begin. Another server than the one that answered last may lack its last writes, and ranges with them:
-- none of those reaches further than two leases ahead.
local function guarded(root, call)
    local run = incarnation()
    local held = redis.call('HMGET', pattern_keys.ids_guard(root), 'run', 'floor', 'longest')
    local longest = math.max(call.lease, arguments.parse_count(held[3] or '', MIN_LEASE, MAX_LEASE) or 0)
    local floor = ending(held[2] or '')
    if held[1] == run and floor then return { run = run, floor = floor, longest = longest } end
    return { run = run, floor = call.now + 2 * longest, longest = longest }
end

-- The node of this holder, else one whose range is over, else one nobody has had: its number and where its ranges end.
local function chosen(root, call)
    local nodes = pattern_keys.ids_nodes(root)
    if call.node ~= '' and redis.call('HGET', pattern_keys.ids_holders(root), call.node) == call.token then
        local ended = ending(redis.call('ZSCORE', nodes, call.node) or nil)
        if ended then return call.node, ended end
    end
    local first = redis.call('ZRANGE', nodes, 0, 0, 'WITHSCORES')
    local free = first[1] and ending(first[2])
    if first[1] and (not free or not arguments.parse_count(first[1], 0, NODES - 1)) then return first[1], nil end
    if free and free <= call.now then return first[1], free end
    local count = redis.call('ZCARD', nodes)
    if count >= NODES then return nil, free - call.now end
    local fresh = string.format('%d', count)
    return fresh, not redis.call('ZSCORE', nodes, fresh) and 0 or nil
end

local function claim(root, call)
    local guard = guarded(root, call)
    local node, ended = chosen(root, call)
    if not node then return { replies.OK, 0, ended } end
    if not ended then return { replies.FAULT, 'what is kept of node ' .. string.sub(node, 1, 40) .. ' is no time' } end
    local from = math.max(call.now, ended, guard.floor, EPOCH)
    local untl = from + call.lease
    if untl > END then return { replies.FAULT, 'these ids end in 2093, and the clock or a range is past that' } end
    local holders = pattern_keys.ids_holders(root)
    redis.call('HLEN', holders) -- the one key not read yet: another type in the way stops here, before the first write
    redis.call('ZADD', pattern_keys.ids_nodes(root), string.format('%.0f', untl), node)
    redis.call('HSET', holders, node, call.token)
    redis.call('HSET', pattern_keys.ids_guard(root), 'run', guard.run, 'floor', string.format('%.0f', guard.floor),
        'longest', string.format('%.0f', guard.longest))
    return { replies.OK, 1, tonumber(node), from, untl, call.now }
end

local function release(root, call)
    local holders = pattern_keys.ids_holders(root)
    if call.node == '' or redis.call('HGET', holders, call.node) ~= call.token then return { replies.OK, 0 } end
    return { replies.OK, redis.call('HDEL', holders, call.node) }
end

return function(KEYS, ARGV)
    local call, bad = read(ARGV)
    if not call then return { replies.BAD_ARGUMENT, bad } end
    return (call.kind == 'claim' and claim or release)(KEYS[1], call)
end
