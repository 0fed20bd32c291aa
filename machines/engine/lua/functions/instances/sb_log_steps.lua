-- needs: arguments, keys, replies, step_log
-- sb_log_steps: has every step of a partition written to its log for a time, for a reader that copies states elsewhere.
-- KEYS:    1 root of the partition
-- ARGV:    1 ms from now, at most 30 days, for which steps are logged; 0 ends it
-- Returns: {OK, 1 where steps were logged up to now, else 0} · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1); each step of the partition then adds an entry to its log
local MAX_MS = 30 * 86400000

return function(KEYS, ARGV)
    local root, duration = KEYS[1], arguments.parse_whole(ARGV[1] or '')
    arguments.need(duration and duration <= MAX_MS, 'steps are logged for 0 to ' .. MAX_MS .. ' ms')
    if not redis.call('HGET', keys.meta(root), 'current') then return { replies.NO_MACHINE } end
    redis.call('XLEN', keys.log(root)) -- throws where something else stands in the log's place
    local now = arguments.read_now()
    local was_on = step_log.set(root, now, duration > 0 and now + duration or 0)
    return { replies.OK, was_on and 1 or 0 }
end
