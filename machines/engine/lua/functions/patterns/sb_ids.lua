-- needs: arguments, pattern_keys, replies
-- sb_ids: hands out a node number and a range of time in which its holder alone makes ids, or takes the node back. Ranges of
-- a node never overlap: each begins where the one before ended, whatever the clock says.
-- KEYS:    1 root of the generator
-- ARGV:    1 claim | release · 2 token of the holder · 3 node that it holds, or '' · 4 lease (ms, 100 to 3600000; with
--          claim) · 5 now (ms since the epoch, or ''; with claim)
-- Returns: {OK, 1, node, from ms, until ms, now ms}: the range is [from, until) · {OK, 0, ms until a node is free} when all
--          are held · {OK, released 0|1} · {BADARG, why} · {FAULT, why}
-- Notifies: nothing
-- Cost:    O(log nodes), and one INFO
local NODES = 1024
local EPOCH, END = 1704067200000, 1704067200000 + 2 ^ 41 -- ms: 2024-01-01, and the end of 41 bits, in 2093
local MIN_LEASE, MAX_LEASE = 100, 3600000
local MAX_TOKEN = 64

local function parse(ARGV)
    local call = { kind = ARGV[1] or '', token = ARGV[2] or '', node = ARGV[3] or '' }
    arguments.need(call.kind == 'claim' or call.kind == 'release', 'the kinds are claim and release')
    arguments.need(#call.token >= 1 and #call.token <= MAX_TOKEN, 'a token has 1 to ' .. MAX_TOKEN .. ' bytes')
    local node = arguments.parse_count(call.node, 0, NODES - 1)
    arguments.need(node or call.node == '', 'node is a whole number from 0 to ' .. NODES - 1)
    if node then call.node = string.format('%d', node) end
    if call.kind == 'release' then return call end
    call.lease = arguments.need_count('lease, in ms,', ARGV[4], MIN_LEASE, MAX_LEASE)
    call.now = arguments.need_now(ARGV[5])
    return call
end

-- Reads the id of the server process, which changes with a restart and with a failover.
local function read_run_id()
    local info = redis.pcall('INFO', 'server')
    return type(info) == 'string' and string.match(info, 'run_id:(%w+)') or 'unknown'
end

-- Parses the end of a range in ms; nil for anything else.
local function parse_end(text)
    local at = tonumber(text or '')
    return at and at % 1 == 0 and at >= 0 and at <= END and at or nil
end

-- Reads from when on ranges may begin. Another server than the last one may lack its latest writes, and ranges with them:
-- none of these reaches further than two leases ahead.
local function read_guard(root, call)
    local run = read_run_id()
    local held = redis.call('HMGET', pattern_keys.ids_guard(root), 'run', 'floor', 'longest')
    local longest = math.max(call.lease, arguments.parse_count(held[3] or '', MIN_LEASE, MAX_LEASE) or 0)
    local floor = parse_end(held[2] or '')
    if held[1] == run and floor then return { run = run, floor = floor, longest = longest } end
    return { run = run, floor = call.now + 2 * longest, longest = longest }
end

-- Chooses the node of this holder, else one whose range is over, else a new one: its number and the end of its ranges.
local function choose_node(root, call)
    local nodes = pattern_keys.ids_nodes(root)
    if call.node ~= '' and redis.call('HGET', pattern_keys.ids_holders(root), call.node) == call.token then
        local ended = parse_end(redis.call('ZSCORE', nodes, call.node) or nil)
        if ended then return call.node, ended end
    end
    local first = redis.call('ZRANGE', nodes, 0, 0, 'WITHSCORES')
    local free = first[1] and parse_end(first[2])
    if first[1] and (not free or not arguments.parse_count(first[1], 0, NODES - 1)) then return first[1], nil end
    if free and free <= call.now then return first[1], free end
    local count = redis.call('ZCARD', nodes)
    if count >= NODES then return nil, free - call.now end
    local fresh = string.format('%d', count)
    return fresh, not redis.call('ZSCORE', nodes, fresh) and 0 or nil
end

local function claim_node(root, call)
    local guard = read_guard(root, call)
    local node, ended = choose_node(root, call)
    if not node then return { replies.OK, 0, ended } end
    if not ended then return { replies.FAULT, 'the stored range of node ' .. string.sub(node, 1, 40) .. ' is no time' } end
    local from = math.max(call.now, ended, guard.floor, EPOCH)
    local range_end = from + call.lease
    if range_end > END then return { replies.FAULT, 'these ids end in 2093, and the clock or a range is past that' } end
    local holders = pattern_keys.ids_holders(root)
    redis.call('HLEN', holders) -- the only key not read yet: throws before the first write when it has another type
    redis.call('ZADD', pattern_keys.ids_nodes(root), string.format('%.0f', range_end), node)
    redis.call('HSET', holders, node, call.token)
    redis.call('HSET', pattern_keys.ids_guard(root), 'run', guard.run, 'floor', string.format('%.0f', guard.floor),
        'longest', string.format('%.0f', guard.longest))
    return { replies.OK, 1, tonumber(node), from, range_end, call.now }
end

local function release_node(root, call)
    local holders = pattern_keys.ids_holders(root)
    if call.node == '' or redis.call('HGET', holders, call.node) ~= call.token then return { replies.OK, 0 } end
    return { replies.OK, redis.call('HDEL', holders, call.node) }
end

return function(KEYS, ARGV)
    local call = parse(ARGV)
    return (call.kind == 'claim' and claim_node or release_node)(KEYS[1], call)
end
