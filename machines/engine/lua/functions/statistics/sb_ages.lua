-- needs: keys, replies
-- sb_ages: reads how many instances are in each of some states, and since when the median one has been.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 a state, then further ones (1 to 500)
-- Returns: {OK, count, ms at which the median instance entered ('' without one), the same of the next, ...} · {NOMACHINE} ·
--          {BADARG, why}
-- Notifies: nothing
-- Cost:    O(states * log(partition))
local MAX_STATES = 500

return function(KEYS, ARGV)
    local root = KEYS[1]
    if not ARGV[1] or #ARGV > MAX_STATES then return { replies.BAD_ARGUMENT, 'there are 1 to ' .. MAX_STATES .. ' states' } end
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local reply = { replies.OK }
    for i, state in ipairs(ARGV) do
        local key = keys.state(root, state)
        local count = redis.call('ZCARD', key)
        local middle = math.floor((count - 1) / 2)
        reply[i * 2] = count
        reply[i * 2 + 1] = count > 0 and redis.call('ZRANGE', key, middle, middle, 'WITHSCORES')[2] or ''
    end
    return reply
end
