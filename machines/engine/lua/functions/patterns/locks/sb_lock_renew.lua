-- needs: locks, replies
-- sb_lock_renew: renews a lock that the token still holds for its whole time.
-- KEYS:    1 the lock's root
-- ARGV:    1 token (32 hex digits) · 2 time to hold (ms, 1 to a day) · 3 now (ms, or '')
-- Returns: {OK, fence} · {LOST, fence, owner} of the present holder, or {LOST, 0, ''} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
return function(KEYS, ARGV)
    local root, token, ms = KEYS[1], ARGV[1], ARGV[2]
    local clock = locks.read_clock(ARGV[3])
    locks.check_token(token)
    locks.check_time(ms)
    local holder = locks.read_holder(root, clock)
    if not holder then return { replies.LOST, 0, '' } end
    if holder.token ~= token then return { replies.LOST, holder.fence, holder.owner } end
    locks.hold(root, clock, holder, tonumber(ms))
    return { replies.OK, holder.fence }
end
