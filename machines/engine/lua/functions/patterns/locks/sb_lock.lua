-- needs: arguments, locks, monotonic, replies
-- sb_lock: takes a lock that nobody holds, and draws its fence in the same step; sent again with its token, it is one taking.
-- KEYS:    1 the lock's root
-- ARGV:    1 token (32 hex digits) · 2 time to hold (ms, 1 to a day) · 3 owner, for people · 4 now (ms, or '')
-- Returns: {OK, fence} · {CONFLICT, ms until it is free or -1, fence, owner} · {FULL} no larger fence is left · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
local function misfit(token, ms, owner)
    if not owner or owner == '' or #owner > locks.MAX_OWNER then return 'an owner has 1 to 150 characters' end
    return locks.check_token(token) or locks.check_time(ms)
end

return function(KEYS, ARGV)
    local root, token, ms, owner = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
    local at, bad = locks.read_clock(ARGV[4])
    bad = bad or misfit(token, ms, owner)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local one, last = locks.read_holder(root, at)
    if one and one.token ~= token then
        return { replies.CONFLICT, locks.count_left(root, one, at), one.fence, one.owner }
    end
    if not one then
        one = { token = token, owner = owner, since = at.now, fence = monotonic.next(last, at.now, 'the fence of ' .. root) }
        if not one.fence then return { replies.FULL } end
    end
    locks.hold(root, at, one, tonumber(ms))
    return { replies.OK, one.fence }
end
