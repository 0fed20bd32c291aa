-- needs: arguments, keys, replies
-- sb_outbox: reads the oldest messages that wait to be delivered.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 limit (1..1000) · 2 after this message id ('' = from the oldest)
-- Returns: {OK, now in ms, '1' when there are more, id, kind, machine, instance, body, id, ...}; a reply has a megabyte at
--          most, about · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(limit)
local MAX_BYTES = 1000000
local CHUNK = 20

local function append_message(reply, message)
    local row = {}
    for i = 1, #message[2], 2 do row[message[2][i]] = message[2][i + 1] end
    for _, item in ipairs({ message[1], row.kind or '', row.machine or '', row.id or '', row.body or '' }) do
        reply[#reply + 1] = item
    end
    return #(row.body or '')
end

return function(KEYS, ARGV)
    local limit, after = arguments.need(arguments.parse_count(ARGV[1], 1, 1000), 'limit is 1 to 1000'), ARGV[2] or ''
    arguments.need(after == '' or string.match(after, '^%d+%-%d+$'), 'after is a message id')
    local reply, bytes, count, key = { replies.OK, arguments.read_now(''), '0' }, 0, 0, keys.outbox(KEYS[1])
    while true do
        local messages = redis.call('XRANGE', key, after == '' and '-' or '(' .. after, '+', 'COUNT', CHUNK)
        for _, message in ipairs(messages) do
            if count >= limit or bytes >= MAX_BYTES then
                reply[3] = '1'
                return reply
            end
            bytes, count, after = bytes + append_message(reply, message), count + 1, message[1]
        end
        if #messages < CHUNK then return reply end
    end
end
