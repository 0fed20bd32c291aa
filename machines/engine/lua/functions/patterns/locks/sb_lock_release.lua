-- needs: locks, pattern_keys, replies
-- sb_lock_release: lets go of a lock, for who holds it still; its last fence stays.
-- KEYS:    1 the lock's root
-- ARGV:    1 token (32 hex digits) · 2 now (ms, or '')
-- Returns: {OK} · {LOST} it was not held by that token any more · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)

-- By the server's own clock the key of the holder says it all: it is gone when its time is over.
local function holds(root, token, at)
    if not at then return redis.call('GET', pattern_keys.lock_holder(root)) == token end
    local one = locks.read_holder(root, at)
    return one and one.token == token
end

return function(KEYS, ARGV)
    local root, token = KEYS[1], ARGV[1]
    local at, bad
    if ARGV[2] and ARGV[2] ~= '' then at, bad = locks.read_clock(ARGV[2]) end
    bad = bad or locks.check_token(token)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    if not holds(root, token, at) then return { replies.LOST } end
    redis.call('DEL', pattern_keys.lock_holder(root))
    return { replies.OK }
end
