-- needs: chart, configurations, expressions, json, simulations, values, work_budget
-- Expands snapshots of simulated instances: what each input of an alphabet would lead to. A checker walks over all that a
-- machine can do with it.
local expansions = {}

local MAX_RECORDS = 10 -- timers of one moment
local NONE = {}
local insert = table.insert

local function copy(found)
    local made = {}
    for name, value in pairs(found) do made[name] = value end
    return made
end

-- Opens a run from a snapshot, which several inputs continue.
local function open(program, script, snapshot)
    local kept = copy(snapshot)
    kept.jobs, kept.late = copy(snapshot.jobs or NONE), copy(snapshot.late or NONE)
    if kept.raw then kept.raw = copy(kept.raw) end
    return simulations.open(program, { id = script.id, now = script.now, snapshot = kept, brief = true })
end

-- Puts the value of a data field in place of each {"$field": name} of a payload.
local function resolve(value, ctx)
    if type(value) ~= 'table' or value == json.null then return value, false end
    local field = ctx.program.fields[value['$field']]
    if field then
        local raw = ctx.raw[field.name]
        return raw == nil and json.null or values.to_null(field.decode(raw)), true
    end
    local made, has_changed = json.is_array(value) and json.list() or {}, false
    for name, part in pairs(value) do
        local inner, changed = resolve(part, ctx)
        made[name], has_changed = inner, has_changed or changed
    end
    return made, has_changed
end

-- Lists the inputs that may come: {input, its number in the alphabet or nil}.
local function list_inputs(run, ctx, script)
    local found = {}
    if run.raw._done then return found end
    for number, input in ipairs(script.alphabet or NONE) do
        if configurations.list_candidates(ctx.program, ctx.config, input.event)[1] then
            local payload, has_changed = resolve(input.payload, ctx)
            insert(found, has_changed and { { event = input.event, payload = payload } } or { input, number })
        end
    end
    if run.raw._timers then insert(found, { { advance = 'next' } }) end
    local results = script.results or NONE
    for _, job in ipairs(run.jobs) do
        for _, result in ipairs(results[job.invoke] or { json.null }) do
            insert(found, { { job = job.invoke, done = result } })
        end
        insert(found, { { job = job.invoke, failed = 'failed' } })
    end
    for invoke in pairs(run.raw._children and cjson.decode(run.raw._children) or NONE) do
        for _, result in ipairs(results[invoke] or { json.null }) do
            insert(found, { { child = invoke, done = result } })
        end
        insert(found, { { child = invoke, failed = 'failed' } })
    end
    work_budget.stop()
    return found
end

-- Judges each property of a snapshot: true, false, or why it fails.
local function judge(run, properties)
    local found, ctx = json.list(), simulations.open_context(run)
    for i, property in ipairs(properties) do
        local ok, value = pcall(property, ctx)
        if ok then found[i] = values.is_true(value) else found[i] = values.describe_error(value) end
    end
    work_budget.stop()
    return found
end

local function describe(run, properties)
    local ctx = simulations.open_context(run)
    local active = json.list()
    for index in pairs(ctx.config.active) do
        insert(active, ctx.program.states[index].name)
    end
    work_budget.stop()
    return { snapshot = simulations.save(run), active = active, done = chart.is_finished(ctx),
        holds = judge(run, properties) }
end

-- Makes a function that says after some calls that it is enough.
local function make_counter()
    local count = 0
    return function()
        count = count + 1
        return count >= MAX_RECORDS
    end
end

local function take_input(program, script, snapshot, chosen, properties)
    local run, edge = open(program, script, snapshot), { input = chosen[2] or chosen[1] }
    local transitions = json.list()
    -- Timers that are due at once follow each other, as when the clock is wound.
    local why = simulations.take_input(run, chosen[1], function(record)
        edge.outcome, edge.error, edge.failing = record.outcome, record.error, record.failing
        edge.event = record.event
        for _, id in ipairs(record.transitions or NONE) do insert(transitions, id) end
    end, make_counter())
    run.till = nil
    edge.error = edge.error or why
    edge.transitions = transitions
    -- A job whose failure nobody listens for can be tried again: its wait is not over.
    local is_over = edge.outcome == 'ignored' and chosen[1].failed == nil
    if edge.outcome == 'taken' or is_over then edge.to = describe(run, properties) end
    return edge
end

-- Compiles the properties of a script, expression trees; throws for a broken one.
function expansions.compile_properties(program, trees)
    local found = {}
    for i, tree in ipairs(trees or NONE) do found[i] = expressions.compile(tree, program) end
    return found
end

-- Describes one snapshot of a script; for the first one.
function expansions.describe(program, script, snapshot, properties)
    return describe(open(program, script, snapshot), properties)
end

-- Answers what the inputs from number `first` on lead to from one snapshot, in the time there is: a list of {input, outcome,
-- event, transitions, error, failing, to}; then the number of the input to go on with, nil at the end.
function expansions.expand(program, script, snapshot, properties, first, is_late)
    local run, edges = open(program, script, snapshot), json.list()
    local inputs = list_inputs(run, simulations.open_context(run), script)
    for i = first, #inputs do
        edges[#edges + 1] = take_input(program, script, snapshot, inputs[i], properties)
        if i < #inputs and is_late() then return edges, i + 1 end
    end
    return edges
end

return expansions
