-- needs: values
-- The deadlines of one instance: those of `after`, and events sent with a delay. They stand in its hash as
-- `_timers`, a JSON list of [id, due ms, event, state or 0, sendid, payload JSON or '', target or '', facts]; the
-- partition's zset of due times only points there, so that a deadline that is not in the list can never fire.
local timers = {}

local MAX_TIMERS = 1000
local ID, STATE, SENDID = 1, 4, 5

-- An id that no other thing of this instance has ever had.
function timers.unique(ctx)
    ctx.numbered = (ctx.numbered or 0) + 1
    return ctx.version + 1 .. '.' .. ctx.numbered
end

-- The list inside a step; `ctx.timers_before` holds the ids as they were.
local function list(ctx)
    if ctx.timers then return ctx.timers end
    local stored = ctx.raw._timers
    ctx.timers, ctx.timers_before = stored and cjson.decode(stored) or {}, {}
    for _, timer in ipairs(ctx.timers) do ctx.timers_before[timer[ID]] = timer[2] end
    return ctx.timers
end
timers.list = list

local function keep(ctx, wanted)
    local kept = {}
    for _, timer in ipairs(list(ctx)) do
        if wanted(timer) then kept[#kept + 1] = timer end
    end
    ctx.timers_changed = ctx.timers_changed or #kept < #ctx.timers
    ctx.timers = kept
end

function timers.arm(ctx, timer)
    local all = list(ctx)
    if #all >= MAX_TIMERS then values.fail('an instance has at most ' .. MAX_TIMERS .. ' timers') end
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

-- The list as the hash keeps it; nil when it is empty.
function timers.text(ctx)
    return ctx.timers[1] and cjson.encode(ctx.timers) or nil
end

return timers
