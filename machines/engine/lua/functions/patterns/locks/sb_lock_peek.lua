-- needs: locks, replies
-- sb_lock_peek: says who holds a lock.
-- flags:   no-writes
-- KEYS:    1 the lock's root
-- ARGV:    1 now (ms, or '')
-- Returns: {OK, owner, fence, since ms, ms until it is free or -1} ('', 0, 0 of a holder that is none of ours) · {OK} nobody ·
--          {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
return function(KEYS, ARGV)
    local at, bad = locks.read_clock(ARGV[1])
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local one = locks.read_holder(KEYS[1], at)
    if not one then return { replies.OK } end
    return { replies.OK, one.owner, one.fence, one.since, locks.count_left(KEYS[1], one, at) }
end
