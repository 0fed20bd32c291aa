-- needs: arguments, pattern_keys, replies
-- sb_buffer_settle: ends a claim of a batch: 'settle', it is written and is deleted; 'back', it was not tried.
-- KEYS:    1 root of one part of a write buffer
-- ARGV:    1 settle | back · 2 batch · 3 token it was claimed with · 4 now (ms, or '')
-- Returns: {OK} · {LOST}: it was claimed by another flusher, or is deleted · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(N) for the N entries of the batch
local function check_arguments(ARGV)
    local what, batch, token = ARGV[1], ARGV[2] or '', ARGV[3] or ''
    if what ~= 'settle' and what ~= 'back' then return 'a batch is ended by settle or back' end
    if not string.match(batch, '^%d+%-%d+$') or #batch > 40 then return 'a batch has an id of two numbers' end
    if not string.match(token, '^%d+%-%w+$') or #token > 100 then return 'a token is a number and a nonce' end
    return arguments.check('', '', '', '', ARGV[4] or '')
end

return function(KEYS, ARGV)
    local root, batch = KEYS[1], ARGV[2]
    local bad = check_arguments(ARGV)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local key, claims = pattern_keys.buffer_batch(root, batch), pattern_keys.buffer_claims(root)
    local facts = redis.call('HMGET', key, 'token', 'takes', 'count')
    if facts[1] ~= ARGV[3] then return { replies.LOST } end
    redis.call('ZSCORE', claims, batch) -- throws before any write when the key has another type
    if ARGV[1] == 'back' then
        local takes = math.max(0, (tonumber(facts[2]) or 1) - 1)
        redis.call('HSET', key, 'token', '', 'takes', string.format('%.0f', takes))
        redis.call('ZADD', claims, string.format('%.0f', (arguments.read_now(ARGV[4]))), batch)
        return { replies.OK }
    end
    redis.call('DECRBY', pattern_keys.buffer_held(root), tonumber(facts[3]) or 0)
    redis.call('ZREM', claims, batch)
    redis.call('UNLINK', key)
    return { replies.OK }
end
