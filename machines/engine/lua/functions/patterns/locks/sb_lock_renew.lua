-- needs: arguments, locks, replies
-- sb_lock_renew: holds a lock for the whole time again, for who holds it still.
-- KEYS:    1 the lock's root
-- ARGV:    1 token (32 hex digits) · 2 time to hold (ms, 1 to a day) · 3 now (ms, or '')
-- Returns: {OK, fence} · {LOST, fence, owner} of who holds it now, or {LOST, 0, ''} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
return function(KEYS, ARGV)
    local root, token, ms = KEYS[1], ARGV[1], ARGV[2]
    local at, bad = locks.read_clock(ARGV[3])
    bad = bad or locks.check_token(token) or locks.check_time(ms)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local one = locks.read_holder(root, at)
    if not one then return { replies.LOST, 0, '' } end
    if one.token ~= token then return { replies.LOST, one.fence, one.owner } end
    locks.hold(root, at, one, tonumber(ms))
    return { replies.OK, one.fence }
end
