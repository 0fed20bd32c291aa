-- needs: arguments, dead_jobs, due_jobs, due_times, instances, keys, pulse, replies, time_limit
-- sb_sweep: takes back jobs whose lease has expired (each counts as an attempt) and wakes delayed ones that are due, in each
-- queue; and corrects the remembered due times. Once for a partition it moves dead jobs of an
-- earlier release to the handled ones, 200 in a call. A slower check of what sb_tick does all the time.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 limit for each queue (1..1000) · 3 ms that the clock cannot have passed as far as the caller
--          knows, or '': a later clock was set, and nothing moves · 4 ms of the clock when it had been set, or '': leases from
--          before begin anew instead of being taken back, and so do those that end too late
-- Returns: {OK, taken back, woken, dead} · {BADARG, why} · {FAULT, why} of the first queue that failed
-- Notifies: <root>:pulse when anything moved
-- Cost:    O(queues + jobs moved * log(queue))
-- Corrects this server's memory of what is due next.
local function note_due_times(root, tally, now)
    due_times.note(root, math.min(tally.due, due_jobs.find_first(keys.timers(root)), due_jobs.find_first(keys.late(root))), now)
    if redis.call('XLEN', keys.outbox(root)) > 0 then due_times.note_messages(root) end
end

return function(KEYS, ARGV)
    local root, limit = KEYS[1], arguments.need(arguments.parse_count(ARGV[2], 1, 1000), 'limit is 1 to 1000')
    local now, clock = arguments.need_now(ARGV[1])
    instances.drop_outdated_programs(root)
    if now > (tonumber(ARGV[3] or '') or now) then return { replies.OK, 0, 0, 0 } end
    local since = tonumber(ARGV[4] or '')
    local tally = due_jobs.new_tally(0, time_limit.start(), since)
    local queues = redis.call('SMEMBERS', keys.queues(root))
    local ok, settled = pcall(dead_jobs.settle, root, queues, now)
    if ok and settled > 0 then pulse.ring(root, clock) end
    if due_jobs.has_none(root, queues) then return { replies.OK, 0, 0, 0 } end
    if since then due_jobs.shorten_leases(root, queues, now, limit) end
    due_jobs.sweep(root, queues, now, limit, tally)
    pcall(note_due_times, root, tally, now)
    due_times.ring_bell(root)
    if due_jobs.count_moved(tally) > 0 then pulse.ring(root, clock) end
    if tally.why[1] then return { replies.FAULT, tally.why[1] } end
    return { replies.OK, tally.taken_back, tally.woken, tally.dead }
end
