-- needs: arguments, chart, commit, core, delivery, due_jobs, due_times, instances, json, keys, partition_log, payloads
-- needs: replies, reserved_events, time_limit, timers, values
-- sb_tick: does in each partition what has become due: fires timers, the oldest first, each as a step of its own; takes back
-- jobs whose lease ran out half a second ago; wakes delayed ones. Answers when the next of these is due, as far as is known here.
-- KEYS:    1 root of a partition, and any further ones that live on the same node
-- ARGV:    1 now (ms, or '') · 2 limit (1..1000) of timers for each partition and of jobs for each queue
--          · 3 'look' to read the keys of partitions in which nothing is due as far as is remembered, too; they are read
--          anyway where now is given
-- Returns: {OK, now in ms, {fired, postponed, jobs moved, next timer in ms or '', next due in ms or '', messages in the outbox,
--          why, ...}, ...}: a list for each partition, at its end what went wrong there. Without a look the next timer and the
--          messages are not told. A call that took long leaves some that are due · {BADARG, why}
-- Notifies: <root>:pulse when something moved
-- Cost:    O(1) and no key read for a partition in which nothing is due, as far as is remembered; with a look O(queues), however
--          much waits; else as sb_fire for each timer, as sb_sweep for jobs
local POSTPONED_MS = 60000 -- one that cannot be carried out now is tried again; it stays overdue meanwhile
local BUDGET_MS = 20
local LEEWAY_MS = 500 -- after the end of a lease: a worker whose job ran past its timeout is about to say so itself
local RETRY_MS = 1000 -- a partition in which something went wrong is looked at again
local ACTOR = 'timer'

-- An event that waited: hands it to whoever it is for. Answers what the history keeps of it, too.
local function send(ctx, timer)
    if reserved_events.is_reserved(timer[3]) then
        local from = { machine = ctx.program.machine, id = ctx.id }
        local message = { kind = 'event', machine = timer[7], id = '', body = { event = timer[3], from = from } }
        delivery.log_failure(ctx.program.root, message, reserved_events.describe(timer[3]))
    end
    local payload = json.decode(timer[6])
    local taken, why = chart.fire_delayed(ctx, timer[7], timer[3], payload, timer[8] == 1 and timer[5] or nil)
    return taken, why, values.kind_of(payload) == 'object' and payloads.encode_for_history(payload) or '0'
end

-- What was neither a step nor a message is kept all the same: the timer is over.
local function carry_out(ctx, timer)
    local taken, why, noted
    ctx.timers_changed = nil -- that this one is over makes no step
    if timer[4] ~= 0 then
        taken, why = core.step(ctx, timer[3], nil, { type = 'platform' })
    else
        taken, why, noted = send(ctx, timer)
    end
    if taken == nil then return nil, why end
    ctx.timers_changed, ctx.own = true, true
    local ok, fault
    if taken or ctx.numbered then
        ok, fault = commit.write_step(ctx, timer[3], ACTOR, '', noted or '0')
    else
        ok, fault = commit.write_bookkeeping(ctx)
    end
    return ok and 'fired' or nil, fault
end

-- 'fired', 'gone' (disarmed since), 'early' and when it is due, or nil and why.
local function fire(root, member, now)
    local id, instance = timers.parse_member(member)
    if not id then return 'gone' end
    local ctx, missing = instances.open(root, instance, now)
    if not ctx then
        if missing[2] then return nil, missing[2] end
        return 'gone'
    end
    local timer = not ctx.raw._suspended and not ctx.raw._done and timers.take(ctx, id)
    if not timer then return 'gone' end
    if timer[2] > now then return 'early', timer[2] end
    return carry_out(ctx, timer)
end

local function postpone(root, member, now, why)
    redis.call('ZADD', keys.late(root), now + POSTPONED_MS, member)
    redis.call('ZREM', keys.timers(root), member)
    pcall(partition_log.append, root, 'kind', 'timer', 'name', 'postponed', 'data',
        json.encode(why), 'instance', string.match(member, ':(.*)$') or '')
    timers.note_failure(root, member, why)
end

-- It is no longer among those in `key`.
local function strike(root, key, member)
    redis.call('ZREM', key, member)
    if key == keys.late(root) then timers.clear_failure(root, member) end
end

-- Works off one list of due times; `tally` counts what was fired and what was put off.
local function work_off(root, key, now, tally)
    local due = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, tally.limit - tally.fired - tally.postponed)
    for _, member in ipairs(due) do
        if tally.fired + tally.postponed > 0 and tally.over() then return end
        local ok, outcome, extra = pcall(fire, root, member, now)
        if ok and outcome == 'fired' then
            tally.fired = tally.fired + 1
        elseif ok and outcome == 'gone' then
            strike(root, key, member)
        elseif ok and outcome == 'early' then
            strike(root, key, member)
            redis.call('ZADD', keys.timers(root), extra, member)
        else
            local why = ok and extra or type(outcome) == 'table' and outcome.err or values.describe_error(outcome)
            postpone(root, member, now, why)
            tally.postponed = tally.postponed + 1
        end
    end
end

-- One part of the work; what goes wrong in it is noted, and keeps the others from nothing.
local function attempt(why, part, ...)
    local ok, found = pcall(part, ...)
    if ok then return found end
    why[#why + 1] = due_jobs.describe_error(found)
    return nil
end

-- Answers when the next timer is due, math.huge without any.
local function fire_due(root, now, tally)
    local timers_key, late_key = keys.timers(root), keys.late(root)
    local timer, late = due_jobs.find_first(timers_key), due_jobs.find_first(late_key) -- throws where one could not be written
    if timer > now and late > now then return math.min(timer, late) end
    if timer <= now then work_off(root, timers_key, now, tally) end
    if late <= now and tally.fired + tally.postponed < tally.limit then work_off(root, late_key, now, tally) end
    return math.min(due_jobs.find_first(timers_key), due_jobs.find_first(late_key))
end

local function moment(ms)
    return ms < math.huge and string.format('%.0f', ms) or ''
end

-- What is answered for a partition. `call`: tells when the whole call has taken long enough, once one has begun to work.
local function look(root, now, limit, call)
    due_times.begin_check(root)
    local tally, swept = { fired = 0, postponed = 0, limit = limit }, due_jobs.new_tally(LEEWAY_MS)
    local why, timer, mail = swept.why, math.huge, 0
    local queues = attempt(why, redis.call, 'SMEMBERS', keys.queues(root)) or {}
    if not attempt(why, due_jobs.has_none, root, queues) then
        call.over = call.over or time_limit.start(BUDGET_MS)
        tally.over, swept.over = call.over, call.over
        timer = attempt(why, fire_due, root, now, tally) or timer
        due_jobs.sweep(root, queues, now, limit, swept)
        mail = attempt(why, redis.call, 'XLEN', keys.outbox(root)) or mail
    end
    local due = math.min(timer, swept.due)
    if why[1] then
        due_times.forget(root)
        due = math.min(due, now + RETRY_MS)
    else
        due = due_times.end_check(root, due, mail > 0, now)
    end
    return { tally.fired, tally.postponed, due_jobs.count_moved(swept), moment(timer), moment(due), mail, unpack(why) }
end

return function(KEYS, ARGV)
    local limit, bad = arguments.parse_count(ARGV[2], 1, 1000), arguments.check('', '', '', '', ARGV[1] or '')
    if not limit then bad = 'limit is 1 to 1000' end
    if not KEYS[1] then bad = 'the partition is missing' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, clock = arguments.read_now(ARGV[1])
    local remembered, call, reply = clock and ARGV[3] ~= 'look', {}, { replies.OK, now }
    for i, root in ipairs(KEYS) do
        local quiet = remembered and due_times.find_next(root, now)
        if quiet then
            reply[i + 2] = { 0, 0, 0, '', moment(quiet), 0 }
        else
            local found = look(root, now, limit, call)
            due_times.ring_bell(root)
            if found[3] > 0 then commit.ring_pulse(root, clock) end
            reply[i + 2] = found
        end
    end
    return reply
end
