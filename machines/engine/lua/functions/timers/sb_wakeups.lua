-- needs: arguments, due_times, pulse, queue_bells, replies
-- sb_wakeups: answers from the server's memory which of many partitions a waiting worker has to look at. It reads no key,
-- so partitions of any slots may be named that this server holds.
-- flags:   no-writes
-- KEYS:    none
-- ARGV:    1.. roots of partitions · last 'jobs' for queues that rang and were not emptied since, or ms: what is due by now
--          plus these; or 'since <ms>': what may have changed since
-- Returns: {OK, now in ms, number of the root (from 1), word, ...} for roots with something to look at only. The word: the
--          queues, separated by spaces; or the ms of what is due next, '' where only the keys tell; or '1' · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(roots) without reading a key
return function(_, ARGV)
    local last = #ARGV
    local what = ARGV[last]
    local since = what and arguments.parse_whole(string.match(what, '^since (%d+)$') or '')
    local horizon = what ~= 'jobs' and not since and arguments.parse_whole(what or '')
    if last < 2 or not (what == 'jobs' or horizon or since) then
        return { replies.BAD_ARGUMENT, "roots come first, and 'jobs', 'since <ms>' or a number of ms last" }
    end
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local reply, count = { replies.OK, now }, 2
    for i = 1, last - 1 do
        local word
        if since then
            word = pulse.was_touched(ARGV[i], since, now) and '1'
        elseif horizon then
            word = due_times.describe(ARGV[i], now, horizon)
        else
            word = queue_bells.list_rung(ARGV[i])
        end
        if word then
            reply[count + 1], reply[count + 2] = i, word
            count = count + 2
        end
    end
    return reply
end
