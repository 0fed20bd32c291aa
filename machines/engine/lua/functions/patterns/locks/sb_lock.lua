-- needs: arguments, locks, monotonic, replies
-- sb_lock: takes a free lock and draws its fence in the same step; a repeated call with the same token has no further
-- effect.
-- KEYS:    1 the lock's root
-- ARGV:    1 token (32 hex digits) · 2 time to hold (ms, 1 to a day) · 3 owner, for people · 4 now (ms, or '')
-- Returns: {OK, fence} · {CONFLICT, ms until it is free or -1, fence, owner} · {FULL} no larger fence is left · {BADARG,
--          why}
-- Notifies: nothing
-- Cost:    O(1)

return function(KEYS, ARGV)
    local root, token, ms, owner = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
    local clock = locks.read_clock(ARGV[4])
    arguments.need((owner or '') ~= '' and #owner <= locks.MAX_OWNER, 'an owner has 1 to 150 characters')
    locks.check_token(token)
    locks.check_time(ms)
    local holder, last = locks.read_holder(root, clock)
    if holder and holder.token ~= token then
        return { replies.CONFLICT, locks.count_left(root, holder, clock), holder.fence, holder.owner }
    end
    if not holder then
        local fence = monotonic.next(last, clock.now, 'the fence of ' .. root)
        if not fence then return { replies.FULL } end
        holder = { token = token, owner = owner, since = clock.now, fence = fence }
    end
    locks.hold(root, clock, holder, tonumber(ms))
    return { replies.OK, holder.fence }
end
