-- needs: arguments, pattern_keys, replies, streams
-- sb_bus_append: appends a message to a stream. A full stream drops the oldest messages that every group has acknowledged;
-- without groups, the oldest.
-- KEYS:    1 root of the stream
-- ARGV:    1 most messages it may hold (1 to 1000000) · 2 message (JSON, 1 to 65536 bytes)
-- Returns: {OK, id} · {FULL, messages in it, group that has not acknowledged the oldest}: nothing was written · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1); for a full stream O(groups) and what it drops
local MAX_LENGTH, MAX_BODY = 1000000, 65536

return function(KEYS, ARGV)
    local limit, body = arguments.need_count('most', ARGV[1], 1, MAX_LENGTH), ARGV[2] or ''
    arguments.need(body ~= '' and #body <= MAX_BODY, 'a message has 1 to ' .. MAX_BODY .. ' bytes')
    local key = pattern_keys.stream_log(KEYS[1])
    if redis.call('XLEN', key) >= limit then
        local room, holder = streams.make_room(key, limit)
        if not room then return { replies.FULL, redis.call('XLEN', key), holder } end
    end
    return { replies.OK, redis.call('XADD', key, '*', 'body', body) }
end
