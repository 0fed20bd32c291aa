-- needs: locks, replies
-- sb_lock_peek: reads who holds a lock.
-- flags:   no-writes
-- KEYS:    1 the lock's root
-- ARGV:    1 now (ms, or '')
-- Returns: {OK, owner, fence, since ms, ms until it is free or -1} ('', 0, 0 for a holder that redis-py wrote) · {OK} free ·
--          {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
return function(KEYS, ARGV)
    local clock = locks.read_clock(ARGV[1])
    local holder = locks.read_holder(KEYS[1], clock)
    if not holder then return { replies.OK } end
    return { replies.OK, holder.owner, holder.fence, holder.since, locks.count_left(KEYS[1], holder, clock) }
end
