-- needs: due_times, failures, keys, values, work_budget
-- The deadlines of one instance: those of `after`, and events sent with a delay. They stand in its hash as
-- `_timers`, a JSON list of [id, due ms, event, state or 0, sendid, payload JSON or '', target or '', facts, since]; the
-- partition's zset of due times only points there, so that a deadline that is not in the list can never fire.
-- `since`: when it was armed, of one that was armed while the instance was suspended.
local timers = {}

local MAX_TIMERS = 1000
local MAX_BYTES = 262144 -- of all of them, since every step of the instance reads them
local OVERHEAD = 60 -- bytes of one in JSON beside its texts, about
local ID, DUE, EVENT, STATE, SENDID, PAYLOAD, TARGET, SINCE = 1, 2, 3, 4, 5, 6, 7, 9

-- An id that no other thing of this instance has ever had.
function timers.unique(ctx)
    ctx.numbered = (ctx.numbered or 0) + 1
    return ctx.version + 1 .. '.' .. ctx.numbered
end

-- Numbers as text that sorts as they do: how many digits there are, as a letter, and then these.
local function sortable(digits)
    return string.char(96 + #digits) .. digits
end

-- What stands for a timer among the due times of the partition. Of several that are due at one moment, the one that
-- was armed first sorts first.
function timers.member(id, instance)
    local version, number = string.match(id, '^(%d+)%.(%d+)$')
    return sortable(version) .. sortable(number) .. ':' .. instance
end

-- The id of the timer and the instance that a member names; nil where it is none.
function timers.named(member)
    local version, number, instance = string.match(member, '^%l(%d+)%l(%d+):(.*)$')
    if not version then return nil end
    return version .. '.' .. number, instance
end

-- Among those that become due.
function timers.schedule(root, instance, id, due, now)
    redis.call('ZADD', keys.timers(root), due, timers.member(id, instance))
    due_times.note(root, due, now)
end

-- Neither among those nor among the ones that could not be carried out when they were due.
function timers.unschedule(root, instance, id)
    local member = timers.member(id, instance)
    if redis.call('ZREM', keys.timers(root), member) == 1 then return end
    if redis.call('ZREM', keys.late(root), member) == 1 then timers.absolve(root, member) end
end

local function owner(member)
    return string.match(member, ':(.*)$')
end

-- A timer that could not be carried out is wrong with its instance,
function timers.blame(root, member, why)
    failures.note(root, owner(member), member, 'timer', why)
end

-- until it is carried out or over.
function timers.absolve(root, member)
    failures.clear(root, owner(member), member)
end

-- The list inside a step; `ctx.timers_before` tells when each was due as it began.
local function list(ctx)
    if ctx.timers then return ctx.timers end
    local stored = ctx.raw._timers
    ctx.timers, ctx.timers_before = stored and cjson.decode(stored) or {}, {}
    work_budget.charge(#ctx.timers * 50) -- what was set may be unset or set anew
    for _, timer in ipairs(ctx.timers) do ctx.timers_before[timer[ID]] = timer[DUE] end
    return ctx.timers
end
timers.list = list

local function keep(ctx, wanted)
    local kept = {}
    work_budget.charge(#list(ctx) * 1.5)
    for _, timer in ipairs(ctx.timers) do
        if wanted(timer) then kept[#kept + 1] = timer end
    end
    if #kept < #ctx.timers then ctx.timers_changed, ctx.timers_bytes = true, nil end
    ctx.timers = kept
end

local function bytes(timer)
    return #timer[EVENT] + #timer[SENDID] + #timer[PAYLOAD] + #timer[TARGET] + OVERHEAD
end

-- Those that wait, and one more.
local function weigh(ctx, timer)
    if not ctx.timers_bytes then
        ctx.timers_bytes = 0
        for _, other in ipairs(ctx.timers) do ctx.timers_bytes = ctx.timers_bytes + bytes(other) end
    end
    ctx.timers_bytes = ctx.timers_bytes + bytes(timer)
    if ctx.timers_bytes > MAX_BYTES then
        values.fail('the timers of an instance have at most ' .. MAX_BYTES .. ' bytes together')
    end
end

function timers.arm(ctx, timer)
    local all = list(ctx)
    if #all >= MAX_TIMERS then values.fail('an instance has at most ' .. MAX_TIMERS .. ' timers') end
    weigh(ctx, timer)
    if ctx.raw._suspended then timer[SINCE] = ctx.now end
    all[#all + 1], ctx.timers_changed = timer, true
end

-- Those that belong to a state that is left.
function timers.disarm(ctx, state)
    if not ctx.timers and not ctx.raw._timers then return end
    keep(ctx, function(timer) return timer[STATE] ~= state end)
end

function timers.cancel(ctx, sendid)
    if not ctx.timers and not ctx.raw._timers then return end
    keep(ctx, function(timer) return timer[SENDID] ~= sendid or sendid == '' end)
end

function timers.clear(ctx)
    if ctx.timers or ctx.raw._timers then keep(ctx, function() return false end) end
end

-- Removes one whose time has come; nil when it was disarmed since.
function timers.take(ctx, id)
    local found
    keep(ctx, function(timer)
        if timer[ID] == id then found = timer end
        return timer[ID] ~= id
    end)
    return found
end

-- The instance was suspended at `since` and goes on now. `shift`: the time it was held does not count.
function timers.release(ctx, since, shift)
    for _, timer in ipairs(list(ctx)) do
        if shift then timer[DUE] = timer[DUE] + math.max(0, ctx.now - math.max(since, timer[SINCE] or since)) end
        ctx.timers_changed = ctx.timers_changed or shift or timer[SINCE] ~= nil
        timer[SINCE] = nil
    end
end

-- The list as the hash keeps it; nil when it is empty.
function timers.text(ctx)
    return ctx.timers[1] and cjson.encode(ctx.timers) or nil
end

return timers
