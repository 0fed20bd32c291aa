-- needs: chart, configurations, fields, permits, shared_lists, values, work_budget
-- The pure core: one external event in, the next picture of the instance and a list of effects out. It touches
-- no key. SCXML, appendix D: select, exit, transition, enter; then eventless transitions and internal events
-- until the machine is stable. All or nothing: an action that fails throws and the picture is dropped.
local core = {}

local MAX_MICROSTEPS = 1000
local GUARD, MICROSTEP = 8, 40 -- units of work
local FEW = 4 -- guards that are not worth counting
local NO_PAYLOAD = {}
local NONE = shared_lists.NONE
local pcall = pcall

-- What one step works on; nil when the definition has no such configuration. `raw` is the instance hash as read; it is
-- changed in place and thrown away on failure.
function core.context(program, id, raw, now)
    work_budget.start()
    if not program.flat or raw._parent then return chart.context(program, id, raw, now) end
    local state = program.index[raw._state]
    if not state and raw._state then return nil end
    return {
        program = program,
        id = id,
        raw = raw,
        now = now,
        key = nil, -- of the instance's hash; set by whoever read it
        state = state,
        origin = state,
        version = tonumber(raw._version),
        payload = NO_PAYLOAD,
        changed = { nil, nil, nil, nil },
        effects = NONE,
        internal = NONE,
        edges = NONE,
        moved = false,
        batch = nil, -- of the call's steps; set where there may be several
        ending = nil, -- the job whose end the step is
    }
end

-- A guard that fails to evaluate does not hold; the explanation says why (SCXML 5.9.1).
local function first_open(ctx, transitions)
    if #transitions > FEW then work_budget.charge(#transitions * GUARD) end
    for i = 1, #transitions do
        local transition = transitions[i]
        local guard = transition.guard
        if not guard then return transition end
        local ok, value = pcall(guard, ctx)
        if ok then
            if value == true or values.truth(value) then return transition end
        else
            work_budget.rethrow_exceeded(value)
        end
    end
end

-- The same for guards that do not fail, which is nearly all of them: a failing one throws, and `core.step` looks again
-- with care. Guards change nothing, so that looking twice does no harm.
local function first_open_boldly(ctx, transitions)
    if #transitions > FEW then work_budget.charge(#transitions * GUARD) end
    for i = 1, #transitions do
        local transition = transitions[i]
        local guard = transition.guard
        if not guard then return transition end
        local value = guard(ctx)
        if value == true or values.truth(value) then return transition end
    end
end

local function enter(ctx, target)
    ctx.state, ctx.moved = target, true
    local entry = ctx.program.states[target].entry
    if entry then entry(ctx) end
end

local function take(ctx, transition)
    if ctx.edges == NONE then ctx.edges = { transition } else table.insert(ctx.edges, transition) end
    local target = transition.target
    if target and (target ~= ctx.state or transition.reenter) then
        local exit = ctx.program.states[ctx.state].exit
        if exit then exit(ctx) end
        if transition.actions then transition.actions(ctx) end
        enter(ctx, target)
    elseif transition.actions then
        transition.actions(ctx)
    end
end

-- The next transition of a macrostep: eventless ones first, then whatever the oldest internal events open.
local function next_transition(ctx)
    local state = ctx.program.states[ctx.state]
    if state.final then return nil end
    local transition = state.always[1] and first_open(ctx, state.always)
    while not transition and ctx.internal[1] do
        local event = table.remove(ctx.internal, 1)
        ctx.payload = event[2]
        transition = first_open(ctx, state.listening(event[1]))
    end
    return transition
end

local function settle(ctx)
    local microsteps = 0
    local transition = next_transition(ctx)
    while transition do
        microsteps = microsteps + 1
        work_budget.charge(MICROSTEP)
        if microsteps > MAX_MICROSTEPS then
            values.fail('more than ' .. MAX_MICROSTEPS .. ' microsteps: the machine does not come to rest')
        end
        take(ctx, transition)
        transition = next_transition(ctx)
    end
end

local function run(ctx, transition)
    take(ctx, transition)
    local state = ctx.program.states[ctx.state]
    if state.always[1] or ctx.internal[1] then settle(ctx) end
    if ctx.heavy then fields.check_size(ctx) end
end

local function attempt(ctx, transitions, choose)
    local transition = choose(ctx, transitions)
    if not transition or ctx.permit and permits.bars(ctx, { transition }) then return false end
    run(ctx, transition)
    return true
end

-- Does anything that is active have a transition for the event?
function core.listens(ctx, event)
    if ctx.chart then return configurations.candidates(ctx.program, ctx.config, event)[1] ~= nil end
    return ctx.program.states[ctx.state].listening(event)[1] ~= nil
end

-- One macrostep. Answers true when a transition was taken; false when none could; nil and why when one failed.
function core.step(ctx, event, payload, facts)
    if ctx.chart then return chart.step(ctx, event, payload, facts) end
    ctx.payload = payload or NO_PAYLOAD
    local state = ctx.program.states[ctx.state]
    if state.final then return false end
    local transitions = state.listening(event)
    local ok, taken = pcall(attempt, ctx, transitions, first_open_boldly)
    -- No transition was begun: what threw was a guard.
    if not ok and ctx.edges == NONE and not work_budget.is_exceeded() then
        ctx.draws = nil
        ok, taken = pcall(attempt, ctx, transitions, first_open)
    end
    if ok then return taken end
    return nil, chart.failure(ctx, taken)
end

local function begin(ctx)
    enter(ctx, ctx.program.initial.targets[1])
    settle(ctx)
    fields.check_size(ctx)
end

-- The first macrostep of a new instance.
function core.start(ctx)
    if ctx.chart then return chart.start(ctx) end
    local ok, caught = pcall(begin, ctx)
    if ok then return true end
    return nil, chart.failure(ctx, caught)
end

-- A repair: the state is set, no action runs. Invokes of the state follow as after any step.
function core.place(ctx, targets)
    if ctx.chart then return chart.place(ctx, targets) end
    ctx.state, ctx.moved = targets[1], true
end

return core
