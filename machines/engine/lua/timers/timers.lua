-- needs: due_times, failures, keys, values, version_counters, work_budget
-- The timers of one instance: those of `after`, and events sent with a delay. Its hash has them as `_timers`, a JSON list of
-- [id, due ms, event, state or 0, sendid, payload JSON or '', target or '', facts, since]. The partition's sorted set of due
-- times only points to the instances, so a timer that is not in the list can never fire. `since`: when a timer was armed
-- while its instance was suspended.
local timers = {}

local MAX_TIMERS = 1000
local MAX_BYTES = 262144 -- of all of them, because every step of the instance reads the list
local OVERHEAD = 60 -- approximate bytes of a timer in JSON beside its texts
local ID, DUE, EVENT, STATE, SENDID, PAYLOAD, TARGET, SINCE = 1, 2, 3, 4, 5, 6, 7, 9

-- Makes an id that nothing else of this instance has ever had.
function timers.make_id(ctx)
    ctx.numbered = (ctx.numbered or 0) + 1
    return ctx.revision + 1 .. '.' .. ctx.numbered
end

-- Formats a number so that texts sort like the numbers: a letter for the count of digits, then the digits.
local function to_sortable(digits)
    return string.char(96 + #digits) .. digits
end

-- Makes the timer's member in the partition's sorted set. Of several timers due at the same ms, the one armed first sorts
-- first.
function timers.make_member(id, instance)
    local revision, number = string.match(id, '^(%d+)%.(%d+)$')
    return to_sortable(revision) .. to_sortable(number) .. ':' .. instance
end

-- Parses a member to the timer's id and the instance; nil for anything else.
function timers.parse_member(member)
    local revision, number, instance = string.match(member, '^%l(%d+)%l(%d+):(.*)$')
    if not revision then return nil end
    return revision .. '.' .. number, instance
end

-- Adds a timer to the due times of the partition.
function timers.schedule(root, instance, id, due, now)
    redis.call('ZADD', keys.timers(root), due, timers.make_member(id, instance))
    due_times.note(root, due, now)
end

-- Removes a timer from the due times and from the late ones, whose step has failed.
function timers.unschedule(root, instance, id)
    local member = timers.make_member(id, instance)
    if redis.call('ZREM', keys.timers(root), member) == 1 then return end
    if redis.call('ZREM', keys.late(root), member) == 1 then timers.clear_failure(root, member) end
end

local function instance_of(member)
    return string.match(member, ':(.*)$')
end

-- Notes a timer whose step failed as a failure of its instance.
function timers.note_failure(root, member, why)
    failures.note(root, instance_of(member), member, 'timer', why)
    version_counters.count_of(root, instance_of(member), 'failed')
end

-- Clears that failure when the timer has fired or is gone.
function timers.clear_failure(root, member)
    failures.clear(root, instance_of(member), member)
end

-- Reads the list inside a step; `ctx.timers_before` maps each timer to its due time at the start.
local function read_list(ctx)
    if ctx.timers then return ctx.timers end
    local stored = ctx.raw._timers
    ctx.timers, ctx.timers_before = stored and cjson.decode(stored) or {}, {}
    work_budget.charge(#ctx.timers * 50) -- the step may disarm each timer, or arm it anew
    for _, timer in ipairs(ctx.timers) do ctx.timers_before[timer[ID]] = timer[DUE] end
    return ctx.timers
end
timers.read_list = read_list

local function keep_only(ctx, wanted)
    local kept = {}
    work_budget.charge(#read_list(ctx) * 1.5)
    for _, timer in ipairs(ctx.timers) do
        if wanted(timer) then kept[#kept + 1] = timer end
    end
    if #kept < #ctx.timers then ctx.timers_changed, ctx.timers_bytes = true, nil end
    ctx.timers = kept
end

local function count_bytes(timer)
    return #timer[EVENT] + #timer[SENDID] + #timer[PAYLOAD] + #timer[TARGET] + OVERHEAD
end

-- Checks the size of the waiting timers and one more.
local function check_bytes(ctx, timer)
    if not ctx.timers_bytes then
        ctx.timers_bytes = 0
        for _, other in ipairs(ctx.timers) do ctx.timers_bytes = ctx.timers_bytes + count_bytes(other) end
    end
    ctx.timers_bytes = ctx.timers_bytes + count_bytes(timer)
    if ctx.timers_bytes > MAX_BYTES then
        values.fail('the timers of an instance have at most ' .. MAX_BYTES .. ' bytes together')
    end
end

function timers.arm(ctx, timer)
    local all = read_list(ctx)
    if #all >= MAX_TIMERS then values.fail('an instance has at most ' .. MAX_TIMERS .. ' timers') end
    check_bytes(ctx, timer)
    if ctx.raw._suspended then timer[SINCE] = ctx.now end
    all[#all + 1], ctx.timers_changed = timer, true
end

-- Disarms the timers of a state that is left.
function timers.disarm(ctx, state)
    if not ctx.timers and not ctx.raw._timers then return end
    keep_only(ctx, function(timer) return timer[STATE] ~= state end)
end

function timers.cancel(ctx, sendid)
    if not ctx.timers and not ctx.raw._timers then return end
    keep_only(ctx, function(timer) return timer[SENDID] ~= sendid or sendid == '' end)
end

function timers.clear(ctx)
    if ctx.timers or ctx.raw._timers then keep_only(ctx, function() return false end) end
end

-- Removes a timer that is due; nil when it was disarmed meanwhile.
function timers.take(ctx, id)
    local found
    keep_only(ctx, function(timer)
        if timer[ID] == id then found = timer end
        return timer[ID] ~= id
    end)
    return found
end

-- Resumes the timers of an instance that was suspended at `since`. `shift`: the suspended time does not count.
function timers.resume(ctx, since, shift)
    for _, timer in ipairs(read_list(ctx)) do
        if shift then timer[DUE] = timer[DUE] + math.max(0, ctx.now - math.max(since, timer[SINCE] or since)) end
        ctx.timers_changed = ctx.timers_changed or shift or timer[SINCE] ~= nil
        timer[SINCE] = nil
    end
end

-- Encodes the list for the hash; nil when it is empty.
function timers.encode(ctx)
    return ctx.timers[1] and cjson.encode(ctx.timers) or nil
end

return timers
