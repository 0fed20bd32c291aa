-- needs: chart, instances, json, keys, packed_jobs, replies, sends, step_jobs, timers, work_budget
-- Previews a repair from the context it made of the instance; writes nothing.
local previews = {}

local TIMER_ID, DUE, EVENT, STATE, TARGET = 1, 2, 3, 4, 7

local function decode_field(field, raw)
    if raw == nil then return json.null end
    local value = field.decode(raw)
    if value == nil then return json.null end
    return value
end

-- Lists the fields whose value changes, with the new value; null for an unset field.
local function list_changes(ctx, before)
    local found = {}
    for _, field in ipairs(ctx.changed) do
        local raw = ctx.raw[field.name]
        if raw ~= before[field.name] then found[field.name] = decode_field(field, raw) end
    end
    return found
end

local function read_job(root, job)
    local row = packed_jobs.read(keys.job(root, job), 'src', 'place', 'invoke') or {}
    return { id = job, src = row.src or '', queue = row.queue or '', place = row.place or '', invoke = row.invoke or '' }
end

-- Lists the jobs that would be withdrawn: those of states left, and the one that the repair replaces.
local function list_withdrawn(ctx, is_deleted)
    local found, gone, root = json.list(), {}, ctx.program.root
    local waiting = ctx.raw._jobs or ''
    if is_deleted then
        for job in string.gmatch(waiting, '%S+') do gone[#gone + 1] = job end
    elseif ctx.moved or ctx.has_ended then
        gone = select(2, step_jobs.sort(ctx, waiting))
    end
    if ctx.ending then gone[#gone + 1] = ctx.ending end
    for i, job in ipairs(gone) do found[i] = read_job(root, job) end
    return found
end

local function describe_job(spec, plan, invoke)
    local input = plan and plan.input and json.decode(plan.input) or json.null
    return { src = spec.src, queue = spec.queue, invoke = invoke, input = input }
end

-- Lists the jobs that a step adds.
function previews.list_added(ctx)
    local found = json.list()
    for _, started in ipairs(ctx.started) do
        found[#found + 1] = describe_job(started.invoke, started.plan, started.invoke.id)
    end
    for _, effect in ipairs(ctx.effects) do
        if effect.kind == 'enqueue' then found[#found + 1] = describe_job(effect.spec, effect.plan, '') end
    end
    return found
end

local function describe_timer(ctx, timer)
    local state = ctx.program.states[timer[STATE]]
    return { id = timer[TIMER_ID], due = timer[DUE], event = timer[EVENT], state = state and state.name or '',
        target = timer[TARGET] }
end

-- Lists the timers of one list that the other lacks, or has with another due time.
function previews.list_differing_timers(ctx, list, other)
    local due, found = {}, json.list()
    for _, timer in ipairs(other) do due[timer[TIMER_ID]] = timer[DUE] end
    for _, timer in ipairs(list) do
        if due[timer[TIMER_ID]] ~= timer[DUE] then found[#found + 1] = describe_timer(ctx, timer) end
    end
    return found
end

-- Lists the children of one set that the other lacks.
function previews.list_differing_children(children, other)
    local found = json.list()
    for invoke, child in pairs(children) do
        local same = other[invoke]
        if not same or same.id ~= child.id then
            found[#found + 1] = { invoke = invoke, machine = child.machine, id = child.id }
        end
    end
    return found
end

local function describe(ctx, is_deleted)
    local before = instances.read(ctx.program.root, ctx.id)
    local old_timers = before._timers and cjson.decode(before._timers) or {}
    local old_children = before._children and cjson.decode(before._children) or {}
    local timers_now = timers.read_list(ctx)
    local children_now = sends.read_children(ctx)
    return {
        before = json.list({ unpack(ctx.config_before.names) }),
        configuration = json.list({ unpack(ctx.config.names) }),
        moved = ctx.moved,
        changes = list_changes(ctx, before),
        withdrawn = list_withdrawn(ctx, is_deleted),
        added = previews.list_added(ctx),
        disarmed = previews.list_differing_timers(ctx, old_timers, timers_now),
        armed = previews.list_differing_timers(ctx, timers_now, old_timers),
        ended = previews.list_differing_children(old_children, children_now),
        started = previews.list_differing_children(children_now, old_children),
        messages = #ctx.messages,
        transitions = replies.join_transitions(ctx),
        done = ctx.has_ended == true or chart.is_finished(ctx),
        renewed = ctx.renewed or '',
        held = ctx.held or 0,
        version = ctx.revision,
    }
end

-- Builds {OK, preview JSON}. `is_deleted`: the repair deletes the instance.
function previews.build_reply(ctx, is_deleted)
    work_budget.stop()
    return { replies.OK, json.encode(describe(ctx, is_deleted), -64) }
end

return previews
