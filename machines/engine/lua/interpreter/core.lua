-- needs: chart, configurations, fields, permits, shared_lists, values, work_budget
-- The entry of the interpreter, and its short form for flat machines: takes one external event, and changes the context of
-- an instance and its list of effects. It touches no key. SCXML, appendix D: select, exit, transition, enter; then eventless
-- transitions and internal events until the machine is stable. All or nothing: an action that fails throws, and the context
-- is dropped.
local core = {}

local MAX_MICROSTEPS = 1000
local GUARD, MICROSTEP = 8, 40 -- units of work
local UNCHARGED = 4 -- so few guards are not worth charging
local NO_PAYLOAD = {}
local NONE = shared_lists.NONE
local pcall = pcall

-- Makes the context of a step; nil when the definition has no such configuration. `raw` is the instance's hash as read; it
-- is changed in place and dropped on failure.
function core.context(program, id, raw, now)
    work_budget.start()
    -- A flat machine has no timers of its own, but an instance that moved there may have a delayed event.
    if not program.flat or raw._parent or raw._timers then return chart.context(program, id, raw, now) end
    local config = raw._state and configurations.parse(program, raw._state)
    if raw._state and not config then return nil end
    local state = config and config.leaves[1]
    return {
        program = program,
        id = id,
        raw = raw,
        now = now,
        key = nil, -- key of the instance's hash; the module that reads it sets this
        config = config,
        config_before = config,
        state = state,
        origin = state,
        revision = tonumber(raw._version),
        payload = NO_PAYLOAD,
        changed = { nil, nil, nil, nil },
        effects = NONE,
        internal = NONE,
        edges = NONE,
        moved = false,
        batch = nil, -- the batch of a call that may take several steps
        ending = nil, -- the job whose end this step is
    }
end

-- Finds the first enabled transition. A guard that throws counts as false; the explanation says why (SCXML 5.9.1).
local function find_enabled(ctx, transitions)
    if #transitions > UNCHARGED then work_budget.charge(#transitions * GUARD) end
    for i = 1, #transitions do
        local transition = transitions[i]
        local guard = transition.guard
        if not guard then return transition end
        local ok, value = pcall(guard, ctx)
        if ok then
            if value == true or values.is_true(value) then return transition end
        else
            work_budget.rethrow_exceeded(value)
        end
    end
end

-- The same without protected calls: nearly all guards do not throw, and `core.step` tries again with find_enabled when one
-- does. Guards change nothing, so a second evaluation does no harm.
local function find_enabled_unprotected(ctx, transitions)
    if #transitions > UNCHARGED then work_budget.charge(#transitions * GUARD) end
    for i = 1, #transitions do
        local transition = transitions[i]
        local guard = transition.guard
        if not guard then return transition end
        local value = guard(ctx)
        if value == true or values.is_true(value) then return transition end
    end
end

local function place(ctx, state)
    ctx.state, ctx.config, ctx.moved = state, configurations.parse(ctx.program, ctx.program.states[state].name), true
end

local function enter_state(ctx, target)
    place(ctx, target)
    local entry = ctx.program.states[target].entry
    if entry then entry(ctx) end
end

local function take_transition(ctx, transition)
    if ctx.edges == NONE then ctx.edges = { transition } else table.insert(ctx.edges, transition) end
    local target = transition.target
    if target and (target ~= ctx.state or transition.reenter) then
        local exit = ctx.program.states[ctx.state].exit
        if exit then exit(ctx) end
        if transition.actions then transition.actions(ctx) end
        enter_state(ctx, target)
    elseif transition.actions then
        transition.actions(ctx)
    end
end

-- Finds the next transition of a macrostep: eventless ones, then those of internal events.
local function next_transition(ctx)
    local state = ctx.program.states[ctx.state]
    if state.final then return nil end
    local transition = state.always[1] and find_enabled(ctx, state.always)
    while not transition and ctx.internal[1] do
        local event = table.remove(ctx.internal, 1)
        ctx.payload = event[2]
        transition = find_enabled(ctx, state.listening(event[1]))
    end
    return transition
end

local function run_to_completion(ctx)
    local microsteps = 0
    local transition = next_transition(ctx)
    while transition do
        microsteps = microsteps + 1
        work_budget.charge(MICROSTEP)
        if microsteps > MAX_MICROSTEPS then
            values.fail('more than ' .. MAX_MICROSTEPS .. ' microsteps: the machine does not come to rest')
        end
        take_transition(ctx, transition)
        transition = next_transition(ctx)
    end
end

local function run_step(ctx, transition)
    take_transition(ctx, transition)
    local state = ctx.program.states[ctx.state]
    if state.always[1] or ctx.internal[1] then run_to_completion(ctx) end
    if ctx.needs_size_check then fields.check_size(ctx) end
end

local function try_step(ctx, transitions, find)
    local transition = find(ctx, transitions)
    if not transition or ctx.permit and permits.is_barred(ctx, { transition }) then return false end
    run_step(ctx, transition)
    return true
end

-- Tells whether an active state has a transition for the event.
function core.has_transition(ctx, event)
    return configurations.list_candidates(ctx.program, ctx.config, event)[1] ~= nil
end

-- Takes one macrostep. Answers true when a transition was taken, false when none was enabled; nil and why when one failed.
function core.step(ctx, event, payload, facts)
    if ctx.chart then return chart.step(ctx, event, payload, facts) end
    ctx.payload = payload or NO_PAYLOAD
    local state = ctx.program.states[ctx.state]
    if state.final then return false end
    local transitions = state.listening(event)
    local ok, taken = pcall(try_step, ctx, transitions, find_enabled_unprotected)
    -- No transition had begun, so a guard threw.
    if not ok and ctx.edges == NONE and not work_budget.is_exceeded() then
        ctx.draws = nil
        ok, taken = pcall(try_step, ctx, transitions, find_enabled)
    end
    if ok then return taken end
    return nil, chart.describe_failure(ctx, taken)
end

local function try_start(ctx)
    enter_state(ctx, ctx.program.initial.targets[1])
    run_to_completion(ctx)
    fields.check_size(ctx)
end

-- Takes the first macrostep of a new instance.
function core.start(ctx)
    if ctx.chart then return chart.start(ctx) end
    local ok, caught = pcall(try_start, ctx)
    if ok then return true end
    return nil, chart.describe_failure(ctx, caught)
end

-- A repair: sets the state without running actions. Its invokes follow as after any step.
function core.enter_state(ctx, targets)
    if ctx.chart then return chart.enter_states(ctx, targets) end
    place(ctx, targets[1])
end

return core
