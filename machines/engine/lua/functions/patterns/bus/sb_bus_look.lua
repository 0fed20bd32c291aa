-- needs: arguments, pattern_keys, replies, streams
-- sb_bus_look: reads how far each group of a stream is, or which messages were given up after too many deliveries.
-- flags:   no-writes
-- KEYS:    1 root of the stream
-- ARGV:    1 lag | dead · 2 with dead, how many (1 to 1000), the newest first
-- Returns: {OK, messages in it, ever added, dead, [[group, unread, or '' when unknown, pending, id of the oldest that is not
--          acknowledged, or '', readers, last delivered id, dropped before delivery], ...]} with lag · {OK, [[id, [field,
--          value, ...]], ...]} with dead · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(groups), or O(dead messages read)
local MAX_DEAD = 1000

local function find_oldest(key, group)
    local pending = streams.find_first_pending(key, group)
    if pending then return pending[1] end
    local following = redis.call('XRANGE', key, '(' .. group.last, '+', 'COUNT', 1)[1]
    return following and following[1] or ''
end

local function read_lag(root)
    local key = pattern_keys.stream_log(root)
    local length, dead = redis.call('XLEN', key), redis.call('XLEN', pattern_keys.stream_dead(root))
    local rows = {}
    for i, group in ipairs(streams.list_groups(key)) do
        local unread = group.lag and math.min(group.lag, length) or ''
        local missing = group.lag and math.max(0, group.lag - length) or 0
        rows[i] = { group.name, unread, group.pending, find_oldest(key, group), group.consumers, group.last, missing }
    end
    return { replies.OK, length, (streams.count_added(key)), dead, rows }
end

return function(KEYS, ARGV)
    local kind, count = ARGV[1] or '', arguments.parse_count(ARGV[2], 1, MAX_DEAD)
    if kind == 'lag' then return read_lag(KEYS[1]) end
    arguments.need(kind == 'dead' and count, 'the kinds are lag, and dead with how many, 1 to ' .. MAX_DEAD)
    return { replies.OK, redis.call('XREVRANGE', pattern_keys.stream_dead(KEYS[1]), '+', '-', 'COUNT', count) }
end
