-- needs: arguments, keys, replies
-- sb_outbox: the oldest messages that wait to be delivered.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 limit (1..1000) · 2 after this message id ('' = from the oldest)
-- Returns: {OK, floor, id, kind, machine, instance, body, id, ...}: floor is the id of the oldest of all, '' when none waits
--          · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(limit)
return function(KEYS, ARGV)
    local limit = arguments.count(ARGV[1], 1, 1000)
    if not limit then return { replies.BAD_ARGUMENT, 'limit is 1 to 1000' } end
    local after = ARGV[2] or ''
    if after ~= '' and not string.match(after, '^%d+%-%d+$') then return { replies.BAD_ARGUMENT, 'after is a message id' } end
    local key = keys.outbox(KEYS[1])
    local oldest = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)
    local reply = { replies.OK, oldest[1] and oldest[1][1] or '' }
    for _, message in ipairs(redis.call('XRANGE', key, after == '' and '-' or '(' .. after, '+', 'COUNT', limit)) do
        local row = {}
        for i = 1, #message[2], 2 do row[message[2][i]] = message[2][i + 1] end
        for _, item in ipairs({ message[1], row.kind or '', row.machine or '', row.id or '', row.body or '' }) do
            reply[#reply + 1] = item
        end
    end
    return reply
end
