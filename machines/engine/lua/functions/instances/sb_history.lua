-- needs: arguments, instances, keys, replies
-- sb_history: reads steps of an instance, newest last, as compact JSON arrays.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 first index · 3 last index (both as LRANGE takes them)
-- Returns: {OK, length, definition, step, ...}: [version, ms, event, state, transitions, actor, reason, payload, set, unset]
--          · {NOINSTANCE} · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(steps read)
return function(KEYS, ARGV)
    local root, id = KEYS[1], ARGV[1]
    local first, last = arguments.parse_count(ARGV[2], -2 ^ 31, 2 ^ 31), arguments.parse_count(ARGV[3], -2 ^ 31, 2 ^ 31)
    if not first or not last then return { replies.BAD_ARGUMENT, 'first and last are whole numbers' } end
    local def = redis.call('HGET', keys.instance(root, id), '_def')
    if not def then return instances.build_missing(root, id) end
    local key = keys.history(root, id)
    local reply = { replies.OK, redis.call('LLEN', key), def }
    for i, step in ipairs(redis.call('LRANGE', key, first, last)) do reply[i + 3] = step end
    return reply
end
