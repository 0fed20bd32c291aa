-- needs: chart, creation, json, timers, work_budget
-- Instances that exist in memory only, for replays, simulations and checks: the interpreter takes their steps, and nothing is
-- read or written.
local memory_instances = {}

local PLATFORM = { type = 'platform' }

-- Makes the context of the step that leads to `revision`, from a copy of the hash; nil when the program has no such
-- configuration.
function memory_instances.open(program, id, hash, revision, at)
    local raw = {}
    for name, value in pairs(hash) do raw[name] = value end
    raw._version = json.number(revision - 1)
    local ctx = chart.context(program, id, raw, at)
    if ctx then ctx.replayed = true end
    return ctx
end

-- Puts into the hash of a context what a commit writes beside the data; answers the hash.
function memory_instances.settle(ctx, revision)
    local raw = ctx.raw
    raw._version = json.number(revision)
    if ctx.moved then
        raw._state = ctx.config.text
        raw._entered = json.number(ctx.now)
    end
    if ctx.timers_changed then raw._timers = timers.encode(ctx) end
    if ctx.children_changed then raw._children = next(ctx.children) and cjson.encode(ctx.children) or nil end
    if ctx.has_ended then raw._done = '1' end
    work_budget.stop()
    return raw
end

-- Takes the step of a timer. Answers like `chart.step`; true also for a step that only made ids.
function memory_instances.take_timer(ctx, timer)
    timers.take(ctx, timer[1])
    ctx.timers_changed = nil
    local taken, why
    if timer[4] ~= 0 then
        taken, why = chart.step(ctx, timer[3], nil, PLATFORM)
    else
        taken, why = chart.fire_delayed(ctx, timer[7], timer[3], json.decode(timer[6]), timer[8] == 1 and timer[5] or nil)
    end
    if taken == false and ctx.numbered then taken = true end
    ctx.timers_changed = true
    return taken, why
end

-- Creates an instance with this data. Answers its context, whether it could begin, and why not; for data that does not fit
-- false, why and the field. `parent`: JSON of the instance that invoked it. `lenient`: undeclared fields are ignored.
function memory_instances.create(program, id, data, at, parent, lenient)
    local raw = { _version = '0', _def = program.def, _created = at, _parent = parent }
    local ctx = chart.context(program, id, raw, at)
    ctx.replayed, ctx.is_new, ctx.given = true, true, {}
    local why, field = creation.fill_data(ctx, data, lenient)
    if why then
        work_budget.stop()
        return ctx, false, why, field
    end
    return ctx, chart.start(ctx)
end

return memory_instances
