-- needs: keys, replies
-- sb_ages: how many instances stand in each of some states, and since when the one in the middle has: half of them for longer.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 a state, and each further one behind it (1 to 500)
-- Returns: {OK, how many, ms at which the one in the middle entered ('' where there is none), the same of the next, ...}
--          · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(states * log(partition))
local MOST = 500

return function(KEYS, ARGV)
    local root = KEYS[1]
    if not ARGV[1] or #ARGV > MOST then return { replies.BAD_ARGUMENT, 'there are 1 to ' .. MOST .. ' states' } end
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
