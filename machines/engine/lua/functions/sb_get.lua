-- needs: instances, keys, replies
-- sb_get: one instance as it is.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 id
-- Returns: {OK, '', '0', field, value, ...} · {NOINSTANCE} · {NOMACHINE}
-- Notifies: nothing
-- Cost:    O(fields of the instance)
return function(KEYS, ARGV)
    local flat = redis.call('HGETALL', keys.instance(KEYS[1], ARGV[1]))
    if #flat == 0 then
        local known = redis.call('EXISTS', keys.meta(KEYS[1])) == 1
        return { known and replies.NO_INSTANCE or replies.NO_MACHINE }
    end
    local reply = { replies.OK, '', '0' }
    for i = 1, #flat do reply[i + 3] = flat[i] end
    return reply
end
