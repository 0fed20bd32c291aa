-- needs: arguments, due_times, pulse, queue_bells, replies
-- sb_wakeups: answers from the server's memory which of its partitions a waiting worker has to look at. It reads no key, and a
-- quiet server answers in a few words, however many partitions it has.
-- flags:   no-writes
-- KEYS:    none
-- ARGV:    1 root of a partition that this server holds; all whose roots begin alike, up to the tag, are meant · 2 'jobs' for
--          queues that rang and were not emptied since; 'since <ms>' for what may have changed since; or ms: what is due by now
--          plus these · 3 and on, with ms only: in place of all, roots that the server may not remember
-- Returns: {OK, now in ms, memory, root, word, ...} for partitions with something to look at. The word: the queues, separated
--          by spaces; or '1'; or the ms of what is due next, '' where only the keys tell. memory: '' where the server does not
--          remember so far back that it could tell what changed; with ms, another text once it forgot what is due somewhere ·
--          {BADARG, why}
-- Notifies: nothing
-- Cost:    O(partitions that the server remembers) without reading a key
return function(_, ARGV)
    local prefix, what = string.match(ARGV[1] or '', '^[^{]*{'), ARGV[2] or ''
    local since = arguments.parse_whole(string.match(what, '^since (%d+)$') or '')
    local horizon = not since and arguments.parse_whole(what)
    arguments.need(prefix and (what == 'jobs' or horizon or since),
        "the root of a partition comes first, then 'jobs', 'since <ms>' or a number of ms")
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local reply, count = { replies.OK, now, '1' }, 3
    local function add(root, word)
        if word and string.sub(root, 1, #prefix) == prefix then
            reply[count + 1], reply[count + 2] = root, word
            count = count + 2
        end
    end
    if what == 'jobs' then
        for root in queue_bells.iterate() do add(root, queue_bells.list_rung(root)) end
    elseif since and pulse.remembers(since, now) then
        for root in pulse.iterate() do add(root, pulse.was_touched(root, since) and '1') end
    elseif since then
        reply[3] = ''
    else
        reply[3] = due_times.identify_memory(ARGV[1], now)
        for i = 3, #ARGV do add(ARGV[i], due_times.describe(ARGV[i], now, horizon)) end
        if not ARGV[3] then
            for root in due_times.iterate() do add(root, due_times.describe(root, now, horizon)) end
        end
    end
    return reply
end
