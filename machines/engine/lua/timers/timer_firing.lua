-- needs: chart, commit, compiled_steps, delivery, due_jobs, instances, json, keys, partition_log, payloads
-- needs: reserved_events, timers, traces, values
-- Fires due timers: each is a step of its own, compiled or interpreted. A timer whose step fails is postponed.
local timer_firing = {}

local POSTPONED_MS = 60000 -- a timer whose step failed is tried again after this and is overdue meanwhile
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

-- Takes the step of a timer. Without a step or message the timer is over anyway.
local function take_step(ctx, timer)
    local taken, why, history_payload
    ctx.timers_changed = nil -- the end of this timer alone makes no step
    if timer[4] ~= 0 then
        taken, why = chart.step(ctx, timer[3], nil, { type = 'platform' })
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
    traces.forget() -- of a job or message that the same call dealt with
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

-- Fires what is due, the oldest first; answers when the next timer is due, math.huge without any. `tally`: limit, fired,
-- postponed, and is_over, which tells whether the time of the call is used up.
function timer_firing.fire_due(root, now, tally)
    local timers_key, late_key = keys.timers(root), keys.late(root)
    -- throws before any write when a key has another type
    local timer, late = due_jobs.find_first(timers_key), due_jobs.find_first(late_key)
    if timer > now and late > now then return math.min(timer, late) end
    if timer <= now then fire_list(root, timers_key, now, tally) end
    if late <= now and tally.fired + tally.postponed < tally.limit then fire_list(root, late_key, now, tally) end
    return math.min(due_jobs.find_first(timers_key), due_jobs.find_first(late_key))
end

return timer_firing
