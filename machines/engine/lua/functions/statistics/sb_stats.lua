-- needs: arguments, json, queue_figures, replies
-- sb_stats: reads each queue of a partition: the number of jobs in each place, counters, and limits.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    none
-- Returns: {OK, JSON {now, queues: {queue: {ready, leased, delayed, dead, handled, oldest, counters, rules, held}}}}: oldest is
--          the ms since when a ready job has waited, judged by the first twenty of each priority; counters and rules are the
--          hashes; held counts the ready jobs that wait for limits of their groups · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(queues), for any number of jobs

return function(KEYS)
    return { replies.OK, json.encode({ now = arguments.read_now(''), queues = queue_figures.read(KEYS[1]) }) }
end
