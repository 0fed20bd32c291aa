-- needs: arguments, pattern_keys, replies
-- sb_buffer_settle: ends a claim of a batch: 'settle', it is written and is deleted; 'back', it was not tried.
-- KEYS:    1 root of one part of a write buffer
-- ARGV:    1 settle | back · 2 batch · 3 token it was claimed with · 4 now (ms, or '')
-- Returns: {OK} · {LOST}: it was claimed by another flusher, or is deleted · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(N) for the N entries of the batch
return function(KEYS, ARGV)
    local root, batch, token = KEYS[1], ARGV[2] or '', ARGV[3] or ''
    arguments.need(ARGV[1] == 'settle' or ARGV[1] == 'back', 'a batch is ended by settle or back')
    arguments.need(string.match(batch, '^%d+%-%d+$') and #batch <= 40, 'a batch has an id of two numbers')
    arguments.need(string.match(token, '^%d+%-%w+$') and #token <= 100, 'a token is a number and a nonce')
    local now = arguments.need_now(ARGV[4])
    local key, claims = pattern_keys.buffer_batch(root, batch), pattern_keys.buffer_claims(root)
    local facts = redis.call('HMGET', key, 'token', 'takes', 'count')
    if facts[1] ~= token then return { replies.LOST } end
    redis.call('ZSCORE', claims, batch) -- throws before any write when the key has another type
    if ARGV[1] == 'back' then
        local takes = math.max(0, (tonumber(facts[2]) or 1) - 1)
        redis.call('HSET', key, 'token', '', 'takes', string.format('%.0f', takes))
        redis.call('ZADD', claims, string.format('%.0f', now), batch)
        return { replies.OK }
    end
    redis.call('DECRBY', pattern_keys.buffer_held(root), tonumber(facts[3]) or 0)
    redis.call('ZREM', claims, batch)
    redis.call('UNLINK', key)
    return { replies.OK }
end
