-- needs: arguments, due_jobs, due_times, group_admissions, keys, pulse, replies, time_limit, timer_firing
-- sb_tick: does in each partition what is due: fires timers, the oldest first, each as a step of its own; takes back jobs
-- whose lease ended half a second ago; wakes delayed ones. Answers when the next of these is due, as far as this server
-- knows.
-- KEYS:    1 root of a partition, and any further ones that live on the same node
-- ARGV:    1 now (ms, or '') · 2 limit (1..1000) of timers for each partition and of jobs for each queue · 3 'look' to read
--          the keys also of partitions in which nothing is remembered as due; with now they are always read · 4 'hears' from
--          a caller that hears the channel <root>:bells and does not wait on the list <root>:bell · 5 ms that the clock cannot
--          have passed as far as the caller knows, or '': a later clock was set, and nothing is done · 6 ms of the clock when it
--          had been set, or '': leases from before begin anew instead of being taken back
-- Returns: {OK, now in ms, {fired, postponed, jobs moved, next timer in ms or '', next due in ms or '', messages in the
--          outbox, why, ..., {queue, home, group, job, token, ...}}, ...}: a list for each partition, with its errors and, where
--          there are any, what sb_admit has to free, at the end. The next timer and the messages are only known after the
--          keys were read. A slow call leaves some that are due · {BADARG, why}
-- Notifies: <root>:pulse when something moved
-- Cost:    O(1) without reading a key for a partition in which nothing is remembered as due; else O(queues), as sb_fire for
--          each timer, and as sb_sweep for jobs
local LEEWAY_MS = 500 -- after the end of a lease: a worker whose job exceeded its timeout reports that itself
local RETRY_MS = 1000 -- a partition with errors is checked again after this

-- Runs one part of the work; an error is noted and does not stop the other parts.
local function try_part(why, part, ...)
    local ok, found = pcall(part, ...)
    if ok then return found end
    why[#why + 1] = due_jobs.describe_error(found)
    return nil
end

local function format_ms(ms)
    return ms < math.huge and string.format('%.0f', ms) or ''
end

-- Checks one partition. `call.is_over` tells whether the whole call has used its time; it starts with the first work.
local function check_partition(root, now, limit, call)
    due_times.begin_check(root)
    local tally, swept = { fired = 0, postponed = 0, limit = limit }, due_jobs.new_tally(LEEWAY_MS, nil, call.since)
    local why, timer, mail = swept.why, math.huge, 0
    local queues = try_part(why, redis.call, 'SMEMBERS', keys.queues(root)) or {}
    if not try_part(why, due_jobs.has_none, root, queues) then
        call.is_over = call.is_over or time_limit.start()
        tally.is_over, swept.is_over = call.is_over, call.is_over
        timer = try_part(why, timer_firing.fire_due, root, now, tally) or timer
        due_jobs.sweep(root, queues, now, limit, swept)
        mail = try_part(why, redis.call, 'XLEN', keys.outbox(root)) or mail
    end
    local due = math.min(timer, swept.due)
    if why[1] then
        due_times.forget(root)
        due = math.min(due, now + RETRY_MS)
    else
        due = due_times.end_check(root, due, mail > 0, now)
    end
    why[#why + 1] = group_admissions.take_lost(root)
    return { tally.fired, tally.postponed, due_jobs.count_moved(swept), format_ms(timer), format_ms(due), mail, unpack(why) }
end

return function(KEYS, ARGV)
    arguments.need(KEYS[1], 'the partition is missing')
    local limit = arguments.need(arguments.parse_count(ARGV[2], 1, 1000), 'limit is 1 to 1000')
    local now, clock = arguments.need_now(ARGV[1])
    local call, reply = { since = tonumber(ARGV[6] or '') }, { replies.OK, now }
    local remembered, was_set = clock and ARGV[3] ~= 'look', now > (tonumber(ARGV[5] or '') or now)
    for i, root in ipairs(KEYS) do
        local next_due = not was_set and remembered and due_times.find_next(root, now)
        if was_set then
            reply[i + 2] = { 0, 0, 0, '', '', 0 }
        elseif next_due then
            reply[i + 2] = { 0, 0, 0, '', format_ms(next_due), 0 }
        else
            local found = check_partition(root, now, limit, call)
            due_times.ring_bell(root)
            if found[3] > 0 then pulse.ring(root, clock) end
            reply[i + 2] = found
        end
        due_times.note_listener(root, ARGV[4] == 'hears')
    end
    return reply
end
