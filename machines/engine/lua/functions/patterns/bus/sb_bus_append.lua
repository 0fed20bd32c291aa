-- needs: arguments, pattern_keys, replies, streams
-- sb_bus_append: puts a message at the end of a stream. Where the stream is full, the oldest that every group has acknowledged
-- make room; without any group the oldest do.
-- KEYS:    1 root of the stream
-- ARGV:    1 most messages it may hold (1 to 1000000) · 2 message (JSON, 1 to 65536 bytes)
-- Returns: {OK, id} · {FULL, messages in it, group that has not acknowledged the oldest}: nothing was written · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1); O(groups) and what goes where it is full
local MOST, MAX_BODY = 1000000, 65536

return function(KEYS, ARGV)
    local most, body = arguments.parse_count(ARGV[1], 1, MOST), ARGV[2] or ''
    if not most then return { replies.BAD_ARGUMENT, 'most is a whole number from 1 to ' .. MOST } end
    if body == '' or #body > MAX_BODY then return { replies.BAD_ARGUMENT, 'a message has 1 to ' .. MAX_BODY .. ' bytes' } end
    local key = pattern_keys.stream_log(KEYS[1])
    if redis.call('XLEN', key) >= most then
        local room, holder = streams.make_room(key, most)
        if not room then return { replies.FULL, redis.call('XLEN', key), holder } end
    end
    return { replies.OK, redis.call('XADD', key, '*', 'body', body) }
end
