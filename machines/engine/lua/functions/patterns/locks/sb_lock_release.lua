-- needs: locks, pattern_keys, replies
-- sb_lock_release: releases a lock that the token still holds; its last fence is kept.
-- KEYS:    1 the lock's root
-- ARGV:    1 token (32 hex digits) · 2 now (ms, or '')
-- Returns: {OK} · {LOST} the token no longer held it · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)

-- By the server's own clock the holder's key alone decides: it has expired when the time is over.
local function is_holder(root, token, clock)
    if not clock then return redis.call('GET', pattern_keys.lock_holder(root)) == token end
    local holder = locks.read_holder(root, clock)
    return holder and holder.token == token
end

return function(KEYS, ARGV)
    local root, token = KEYS[1], ARGV[1]
    local clock = (ARGV[2] or '') ~= '' and locks.read_clock(ARGV[2])
    locks.check_token(token)
    if not is_holder(root, token, clock) then return { replies.LOST } end
    redis.call('DEL', pattern_keys.lock_holder(root))
    return { replies.OK }
end
