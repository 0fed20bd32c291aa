-- needs: arguments, pattern_keys, replies
-- sb_buffer_settle: ends what a flusher began with a batch: 'settle', it is written and goes; 'back', it was not tried.
-- KEYS:    1 root of one part of a write buffer
-- ARGV:    1 settle | back · 2 batch · 3 token it was claimed with · 4 now (ms, or '')
-- Returns: {OK} · {LOST}: it is somebody else's by now, or gone · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(N) for the N entries of the batch
local function misfit(ARGV)
    local what, batch, token = ARGV[1], ARGV[2] or '', ARGV[3] or ''
    if what ~= 'settle' and what ~= 'back' then return 'a batch is ended by settle or back' end
    if not string.match(batch, '^%d+%-%d+$') or #batch > 40 then return 'a batch has an id of two numbers' end
    if not string.match(token, '^%d+%-%w+$') or #token > 100 then return 'a token is a number and a nonce' end
    return arguments.check('', '', '', '', ARGV[4] or '')
end

return function(KEYS, ARGV)
    local root, batch = KEYS[1], ARGV[2]
    local bad = misfit(ARGV)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local key, claims = pattern_keys.buffer_batch(root, batch), pattern_keys.buffer_claims(root)
    local own = redis.call('HMGET', key, 'token', 'takes', 'count')
    if own[1] ~= ARGV[3] then return { replies.LOST } end
    redis.call('ZSCORE', claims, batch) -- fails here, before anything is written, where something foreign is in its place
    if ARGV[1] == 'back' then
        local takes = math.max(0, (tonumber(own[2]) or 1) - 1)
        redis.call('HSET', key, 'token', '', 'takes', string.format('%.0f', takes))
        redis.call('ZADD', claims, string.format('%.0f', (arguments.read_now(ARGV[4]))), batch)
        return { replies.OK }
    end
    redis.call('DECRBY', pattern_keys.buffer_held(root), tonumber(own[3]) or 0)
    redis.call('ZREM', claims, batch)
    redis.call('UNLINK', key)
    return { replies.OK }
end
