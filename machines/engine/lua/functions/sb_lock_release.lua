-- needs: locking, patternkeys, replies
-- sb_lock_release: lets go of a lock, for who holds it still; its last fence stays.
-- KEYS:    1 the lock's root
-- ARGV:    1 token (32 hex digits) · 2 now (ms, or '')
-- Returns: {OK} · {LOST} it was not held by that token any more · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
return function(KEYS, ARGV)
    local root, token = KEYS[1], ARGV[1]
    local at, bad = locking.at(ARGV[2])
    bad = bad or locking.bad_token(token)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local one = locking.held(root, at)
    if not one or one.token ~= token then return { replies.LOST } end
    redis.call('DEL', patternkeys.lock_holder(root))
    return { replies.OK }
end
