-- needs: arguments, history_entries, instances, keys, replies
-- sb_history: reads steps of an instance, newest last, as compact JSON arrays.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 first index · 3 last index (both as LRANGE takes them)
-- Returns: {OK, length, definition, step, ...}: [revision, ms, event, state, transitions, actor, reason, payload, set, unset,
--          job]; job, of its end: [ms until first taken, until last taken, since, attempt, worker] · {NOINSTANCE}
--          · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(steps read)
return function(KEYS, ARGV)
    local root, id = KEYS[1], ARGV[1]
    local first, last = arguments.parse_count(ARGV[2], -2 ^ 31, 2 ^ 31), arguments.parse_count(ARGV[3], -2 ^ 31, 2 ^ 31)
    arguments.need(first and last, 'first and last are whole numbers')
    local def, created = unpack(redis.call('HMGET', keys.instance(root, id), '_def', '_created'))
    if not def then return instances.build_missing(root, id) end
    local key = keys.history(root, id)
    local reply = { replies.OK, redis.call('LLEN', key), def }
    local steps = history_entries.unpack_all(root, created, redis.call('LRANGE', key, first, last))
    for i = 1, #steps do reply[i + 3] = steps[i] end
    return reply
end
