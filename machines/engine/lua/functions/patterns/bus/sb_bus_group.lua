-- needs: arguments, pattern_keys, replies, streams
-- sb_bus_group: creates a group of readers of a stream, or deletes one.
-- KEYS:    1 root of the stream
-- ARGV:    1 make (an existing one stays) | anew (replaces it) | forget · 2 group · 3 where it starts: 0 = the oldest
--          message, $ = after the newest, or after an id · 4 with an id, how many messages were ever added up to it, or ''
-- Returns: {OK, 1 created or deleted, 0 nothing to do} · {FULL, groups} at the limit · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(groups)
local MAX_EXACT = 2 ^ 53
local KINDS = { make = true, anew = true, forget = true }

local function parse(ARGV)
    local call = { kind = ARGV[1] or '', group = ARGV[2], start = ARGV[3] or '', position = ARGV[4] or '' }
    arguments.need(KINDS[call.kind], 'the kinds are make, anew and forget')
    arguments.need(streams.is_name(call.group), 'a group has a name of 1 to 512 bytes')
    if call.kind == 'forget' then return call end
    local is_start = call.start == '0' or call.start == '$' or streams.is_id(call.start)
    arguments.need(is_start, 'a group starts at 0, at $ or after an id')
    local is_position = call.position == '' or arguments.parse_count(call.position, 0, MAX_EXACT)
    arguments.need(is_position, 'a position is a whole number')
    return call
end

-- Answers how many messages were ever added before the start of the group, as arguments of XGROUP; nil when unknown.
local function count_position(key, call)
    local added, gone = streams.count_added(key)
    local position = call.start == '0' and gone or call.start == '$' and added or tonumber(call.position)
    if position then return 'ENTRIESREAD', string.format('%.0f', position) end
    return nil
end

return function(KEYS, ARGV)
    local call = parse(ARGV)
    local key = pattern_keys.stream_log(KEYS[1])
    local groups = streams.list_groups(key) -- throws when the key is no stream
    local exists = false
    for _, group in ipairs(groups) do exists = exists or group.name == call.group end
    if call.kind == 'forget' then return { replies.OK, exists and redis.call('XGROUP', 'DESTROY', key, call.group) or 0 } end
    if exists and call.kind == 'make' then return { replies.OK, 0 } end
    if not exists and #groups >= streams.MOST_GROUPS then return { replies.FULL, #groups } end
    if exists then redis.call('XGROUP', 'DESTROY', key, call.group) end
    redis.call('XGROUP', 'CREATE', key, call.group, call.start, 'MKSTREAM', count_position(key, call))
    return { replies.OK, 1 }
end
