-- needs: arguments, delivery, due_times, keys, pulse, replies
-- sb_settle: removes delivered messages from the outbox; tells the senders of failed ones in the same call.
-- KEYS:    1 root of the partition whose outbox it is
-- ARGV:    1 now (ms, or '') · 2 message id · 3 'done' or 'failed' · 4 why ('' when done) · and so on, three for each message
-- Returns: {OK, how many were removed, how many still wait} · {BADARG, why}
-- Notifies: <root>:pulse when something went
-- Cost:    O(messages); as sb_fire for each that failed
local function parse_message(found)
    local row = {}
    for i = 1, #found[2], 2 do row[found[2][i]] = found[2][i + 1] end
    row.body = delivery.parse(row.kind, row.body or '')
    return row.body and row.machine and row.id and row
end

local function settle_message(root, id, outcome, why, now)
    local key = keys.outbox(root)
    if outcome == 'failed' then
        local found = redis.call('XRANGE', key, id, id)[1]
        local message = found and parse_message(found)
        if message then delivery.bounce(root, message, why, now) end
    end
    return redis.call('XDEL', key, id)
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    arguments.need(ARGV[2], 'no message is named')
    for i = 2, #ARGV, 3 do
        local fits = string.match(ARGV[i], '^%d+%-%d+$') and (ARGV[i + 1] == 'done' or ARGV[i + 1] == 'failed') and ARGV[i + 2]
        arguments.need(fits, 'each message has an id, an outcome and a reason')
    end
    local now, gone = arguments.need_now(ARGV[1]), 0
    redis.call('XLEN', keys.outbox(root))
    for i = 2, #ARGV, 3 do gone = gone + settle_message(root, ARGV[i], ARGV[i + 1], ARGV[i + 2], now) end
    if gone > 0 then pulse.ring(root) end
    due_times.ring_bell(root)
    return { replies.OK, gone, redis.call('XLEN', keys.outbox(root)) }
end
