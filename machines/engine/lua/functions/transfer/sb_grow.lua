-- needs: arguments, group_admissions, keys, redirects, replies
-- sb_grow: tells a partition that its machine grows, and by which run of the command; or reads what it knows. Runs before
-- this one can move nothing any more.
-- KEYS:    1 root of the partition
-- ARGV:    1 partitions before · 2 partitions after, a multiple of them · 3 number of the run (from 1)
-- Returns: {OK, ids that are between two partitions, ...} · {CONFLICT, run} a later run has begun · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(ids between two partitions + leased jobs)
local MAX_PARTITIONS, MAX_RUN = 65536, 1e9

return function(KEYS, ARGV)
    local root, count = KEYS[1], arguments.parse_count
    local from, to = count(ARGV[1], 1, MAX_PARTITIONS), count(ARGV[2], 1, MAX_PARTITIONS)
    local run = count(ARGV[3], 1, MAX_RUN)
    arguments.need(from and to and run and to % from == 0,
        'a machine grows from a number of partitions to a multiple of it, in a numbered run')
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local before = redirects.read_growth(root)
    if before and before.run > run then return { replies.CONFLICT, tostring(before.run) } end
    redis.call('HSET', keys.meta(root), 'grown', from .. ':' .. to .. ':' .. run, 'partitions', to)
    if from == 1 then -- the one partition counted its own jobs; it becomes the home of its queues
        local now = arguments.need_now('')
        for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do group_admissions.count_leased(root, queue, now) end
    end
    local reply = redis.call('HKEYS', keys.staged(root))
    table.insert(reply, 1, replies.OK)
    return reply
end
