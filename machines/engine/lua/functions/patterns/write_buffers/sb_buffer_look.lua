-- needs: arguments, pattern_keys, replies
-- sb_buffer_look: reads how much waits in one part of a write buffer, and which batches are leased.
-- flags:   no-writes
-- KEYS:    1 root of one part of a write buffer
-- ARGV:    1 now (ms, or '')
-- Returns: {OK, now, entries without a batch, ms of the oldest of their first writes ('' = none), entries in batches,
--          batches, then of the 50 that may be claimed first: batch, entries, how often it was claimed, ms of the oldest of
--          their first writes, ms from when it may be claimed again} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log(M)) for M that wait
local MAX_BATCHES = 50

return function(KEYS, ARGV)
    local root, at_ms = KEYS[1], (arguments.need_now(arguments.need(ARGV[1], 'now is missing')))
    local pending, claims = pattern_keys.buffer_pending(root), pattern_keys.buffer_claims(root)
    local first = redis.call('ZRANGE', pending, 0, 0, 'WITHSCORES')
    local held = redis.call('GET', pattern_keys.buffer_held(root)) or '0'
    local now = string.format('%.0f', at_ms)
    local reply = { replies.OK, now, redis.call('ZCARD', pending), first[2] or '', held, redis.call('ZCARD', claims) }
    local due = redis.call('ZRANGE', claims, 0, MAX_BATCHES - 1, 'WITHSCORES')
    for i = 1, #due, 2 do
        local facts = redis.pcall('HMGET', pattern_keys.buffer_batch(root, due[i]), 'count', 'takes', 'since')
        local at = #reply
        reply[at + 1], reply[at + 2], reply[at + 3] = due[i], facts[1] or '0', facts[2] or '0'
        reply[at + 4], reply[at + 5] = facts[3] or '', due[i + 1]
    end
    return reply
end
