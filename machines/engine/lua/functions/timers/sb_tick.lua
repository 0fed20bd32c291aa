-- needs: arguments, chart, commit, compiled_steps, core, delivery, due_jobs, due_times, instances, json, keys, partition_log
-- needs: payloads, replies, reserved_events, time_limit, timers, values
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
--          outbox, why, ...}, ...}: a list for each partition, with its errors at the end. The next timer and the messages
--          are only known after the keys were read. A slow call leaves some that are due · {BADARG, why}
-- Notifies: <root>:pulse when something moved
-- Cost:    O(1) without reading a key for a partition in which nothing is remembered as due; else O(queues), as sb_fire for
--          each timer, and as sb_sweep for jobs
local POSTPONED_MS = 60000 -- a timer whose step failed is tried again after this and is overdue meanwhile
local LEEWAY_MS = 500 -- after the end of a lease: a worker whose job exceeded its timeout reports that itself
local RETRY_MS = 1000 -- a partition with errors is checked again after this
local ACTOR = 'timer'

-- Sends a delayed event to its target. Answers also its payload for the history.
local function send_delayed(ctx, timer)
    if reserved_events.is_reserved(timer[3]) then
        local from = { machine = ctx.program.machine, id = ctx.id }
        local message = { kind = 'event', machine = timer[7], id = '', body = { event = timer[3], from = from } }
        delivery.log_failure(ctx.program.root, message, reserved_events.describe(timer[3]))
    end
    local payload = json.decode(timer[6])
    local taken, why = chart.fire_delayed(ctx, timer[7], timer[3], payload, timer[8] == 1 and timer[5] or nil)
    return taken, why, values.kind_of(payload) == 'object' and payloads.encode_for_history(payload) or payloads.NOT_KEPT
end

-- Takes the step of a timer. Without a step or message the timer is over all the same.
local function take_step(ctx, timer)
    local taken, why, history_payload
    ctx.timers_changed = nil -- the end of this timer alone makes no step
    if timer[4] ~= 0 then
        taken, why = core.step(ctx, timer[3], nil, { type = 'platform' })
    else
        taken, why, history_payload = send_delayed(ctx, timer)
    end
    if taken == nil then return nil, why end
    ctx.timers_changed, ctx.by_engine = true, true
    local ok, fault
    if taken or ctx.numbered then
        ok, fault = commit.write_step(ctx, timer[3], ACTOR, '', history_payload or '0')
    else
        ok, fault = commit.write_bookkeeping(ctx)
    end
    return ok and 'fired' or nil, fault
end

-- Answers 'fired', 'gone' (disarmed meanwhile), 'early' and when it is due, or nil and why.
local function fire_timer(root, member, now)
    local id, instance = timers.parse_member(member)
    if not id then return 'gone' end
    local key = keys.instance(root, instance)
    local flat = redis.call('HGETALL', key)
    if compiled_steps.fire_timer(root, instance, key, flat, id, now) then return 'fired' end
    local ctx, missing = instances.open_read(root, instance, key, flat, now)
    if not ctx then
        if missing[2] then return nil, missing[2] end
        return 'gone'
    end
    local timer = not ctx.raw._suspended and not ctx.raw._done and timers.take(ctx, id)
    if not timer then return 'gone' end
    if timer[2] > now then return 'early', timer[2] end
    return take_step(ctx, timer)
end

local function postpone(root, member, now, why)
    redis.call('ZADD', keys.late(root), now + POSTPONED_MS, member)
    redis.call('ZREM', keys.timers(root), member)
    pcall(partition_log.append, root, 'kind', 'timer', 'name', 'postponed', 'data',
        json.encode(why), 'instance', string.match(member, ':(.*)$') or '')
    timers.note_failure(root, member, why)
end

-- Removes a member from the list in `key`.
local function remove_member(root, key, member)
    redis.call('ZREM', key, member)
    if key == keys.late(root) then timers.clear_failure(root, member) end
end

-- Fires the timers of one list of due times; `tally` counts those fired and those postponed.
local function fire_list(root, key, now, tally)
    local due = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, tally.limit - tally.fired - tally.postponed)
    for _, member in ipairs(due) do
        if tally.fired + tally.postponed > 0 and tally.is_over() then return end
        local ok, outcome, extra = pcall(fire_timer, root, member, now)
        if ok and outcome == 'fired' then
            tally.fired = tally.fired + 1
        elseif ok and outcome == 'gone' then
            remove_member(root, key, member)
        elseif ok and outcome == 'early' then
            remove_member(root, key, member)
            redis.call('ZADD', keys.timers(root), extra, member)
        else
            local why = ok and extra or type(outcome) == 'table' and outcome.err or values.describe_error(outcome)
            postpone(root, member, now, why)
            tally.postponed = tally.postponed + 1
        end
    end
end

-- Runs one part of the work; an error is noted and does not stop the other parts.
local function try_part(why, part, ...)
    local ok, found = pcall(part, ...)
    if ok then return found end
    why[#why + 1] = due_jobs.describe_error(found)
    return nil
end

-- Answers when the next timer is due, math.huge without any.
local function fire_timers(root, now, tally)
    local timers_key, late_key = keys.timers(root), keys.late(root)
    -- throws before any write when a key has another type
    local timer, late = due_jobs.find_first(timers_key), due_jobs.find_first(late_key)
    if timer > now and late > now then return math.min(timer, late) end
    if timer <= now then fire_list(root, timers_key, now, tally) end
    if late <= now and tally.fired + tally.postponed < tally.limit then fire_list(root, late_key, now, tally) end
    return math.min(due_jobs.find_first(timers_key), due_jobs.find_first(late_key))
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
        timer = try_part(why, fire_timers, root, now, tally) or timer
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
    return { tally.fired, tally.postponed, due_jobs.count_moved(swept), format_ms(timer), format_ms(due), mail, unpack(why) }
end

return function(KEYS, ARGV)
    local limit, bad = arguments.parse_count(ARGV[2], 1, 1000), arguments.check('', '', '', '', ARGV[1] or '')
    if not limit then bad = 'limit is 1 to 1000' end
    if not KEYS[1] then bad = 'the partition is missing' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, clock = arguments.read_now(ARGV[1])
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
            if found[3] > 0 then commit.ring_pulse(root, clock) end
            reply[i + 2] = found
        end
        due_times.note_listener(root, ARGV[4] == 'hears')
    end
    return reply
end
