-- needs: arguments, json, keys, live_figures, replies
-- sb_live: reads everything that the dashboard shows of a partition, as absolute values at one moment.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '')
-- Returns: {OK, JSON {version, counts, oldest, breaches, unchecked, breached_since, flow, refused, queues, total,
--          timers, overdue, late, mail, compile_failures, now}}
--          · {NOMACHINE} · {BADARG, why}
--          counts: leaf -> instances, for each leaf of the current version and each other one that holds any;
--          oldest: state -> ms entered; breaches: state with a service level ->
--          instances that have been in it for longer and are not suspended; unchecked: state -> how many of those may be
--          suspended after all, because more than 1000 are late; breached_since: state -> ms at which the first of them
--          entered it; flow: <version>:<transition> -> times taken;
--          refused: event -> times; queues: queue -> {ready, leased, delayed, dead,
--          handled}; total: instances;
--          timers, overdue, mail: how many wait; late: those of the overdue whose step failed; compile_failures: steps that
--          could not be compiled since this server loaded the library, and are interpreted
-- Notifies: nothing
-- Cost:    O(states + transitions + queues), and up to 5000 late instances, whatever the number of instances

return function(KEYS, ARGV)
    local root, now = KEYS[1], (arguments.need_now(ARGV[1]))
    local current = redis.call('HGET', keys.meta(root), 'current')
    if not current then return { replies.NO_MACHINE } end
    return { replies.OK, json.encode(live_figures.read(root, current, now, live_figures.make_budget())) }
end
