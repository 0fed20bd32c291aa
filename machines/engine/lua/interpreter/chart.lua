-- needs: configurations, durations, fields, job_requests, permits, reserved_events, sends, shared_lists, timers
-- needs: values, work_budget
-- The interpreter of statecharts: SCXML, appendix D. Pure: it changes the context of a step and collects effects; it touches
-- no key. All or nothing: an action that fails throws, and the context is dropped.
local chart = {}

local MAX_MICROSTEPS = 1000
local MICROSTEP, EVENT, STATE, GUARD, TIMER, CHILD = 40, 10, 8, 8, 40, 80 -- units of work
local UNCHARGED = 4 -- guards of a flat machine; so few are not worth charging
local MAX_EVENTS = 10000 -- events processed in one step, including those that no transition takes
local NO_PAYLOAD, EXTERNAL = {}, { type = 'external' }
local NONE = shared_lists.NONE
local pcall, type, charge = pcall, type, work_budget.charge

-- Makes the context of a step; nil when the definition has no such configuration. `raw` is the instance's hash as read; it is
-- changed in place and dropped on failure. One table of known size, because every call makes one.
function chart.context(program, id, raw, now)
    local text, config = raw._state, nil
    work_budget.start()
    if text then
        config = configurations.parse(program, text)
        if not config then return nil end
    end
    return {
        -- A flat machine has no timers of its own, but an instance that moved there may have a delayed event.
        chart = not program.flat or raw._parent ~= nil or raw._timers ~= nil,
        program = program,
        id = id,
        raw = raw,
        now = now,
        key = nil, -- key of the instance's hash; the module that reads it sets this
        config = config,
        config_before = config,
        state = config and config.leaves[1], -- of a flat machine, like `origin`, where it was
        origin = config and config.leaves[1],
        active = config and config.active or {},
        revision = tonumber(raw._version),
        payload = NO_PAYLOAD,
        changed = { nil, nil, nil, nil },
        effects = NONE,
        internal = NONE,
        external = NONE,
        messages = NONE,
        started = NONE, -- jobs of invokes that begin with this step
        edges = NONE,
        entered = {}, -- states whose invokes have not begun
        fresh = {}, -- states entered in this step and still active
        exited = {}, -- states left in this step
        changed_meta = {}, -- changed fields of the engine's own
        microsteps = 0,
        events = 0,
        moved = false,
        batch = nil, -- the batch of a call that may take several steps
        ending = nil, -- the job whose end this step is
    }
end

-- Tells whether an instance has ended. That of a flat machine has no mark of it.
function chart.is_finished(ctx)
    return ctx.raw._done ~= nil or not ctx.chart and ctx.program.states[ctx.state].final == true
end

-- Tells whether an active state has a transition for the event.
function chart.has_transition(ctx, event)
    return configurations.list_candidates(ctx.program, ctx.config, event)[1] ~= nil
end

-- Throws an error that no block catches: the step as a whole exceeds a limit.
local function throw_final(message)
    error({ sb = message, hard = true })
end

-- Runs a block of actions. In definitions that ask for it, an error becomes error.execution and ends only this block (SCXML
-- 5.10, 3.12).
local function run_block(ctx, block)
    if not ctx.program.raises then return block(ctx) end
    local ok, caught = pcall(block, ctx)
    if ok then return caught end
    if type(caught) ~= 'table' or not caught.sb or caught.hard then error(caught, 0) end
    sends.raise_platform(ctx, 'error.execution', caught.sb, caught.sendid)
end
chart.run_block = run_block

-- Evaluates a condition. An error counts as false (SCXML 5.9.1), except inside an action of a machine whose errors refuse
-- the step.
function chart.evaluate_condition(ctx, guard)
    if not guard then return true end
    if not ctx.program.raises then return values.is_true(guard(ctx)) end
    local ok, value = pcall(guard, ctx)
    if ok then return values.is_true(value) end
    work_budget.rethrow_exceeded(value)
    sends.raise_platform(ctx, 'error.execution', values.describe_error(value))
    return false
end

-- Describes the error of a step as text. Stops the work count.
local function describe_failure(ctx, caught)
    ctx.work, ctx.exhausted = work_budget.count_spent(), work_budget.is_exceeded()
    work_budget.stop()
    return values.describe_error(caught)
end
chart.describe_failure = describe_failure

-- Selecting transitions

local function evaluate_guard(ctx, transition)
    local guard = transition.guard
    if not guard then return true end
    local ok, value = pcall(guard, ctx)
    if ok then return value == true or values.is_true(value) end
    work_budget.rethrow_exceeded(value)
    if ctx.program.raises then sends.raise_platform(ctx, 'error.execution', values.describe_error(value)) end
    return false
end

-- Finds the first enabled transition. The guard of a transition that several leaves inherit is evaluated once.
local function find_enabled(ctx, list, evaluated)
    if ctx.chart or #list > UNCHARGED then charge(#list * GUARD) end
    for i = 1, #list do
        local transition = list[i]
        local is_enabled = evaluated and evaluated[transition]
        if is_enabled == nil then
            is_enabled = evaluate_guard(ctx, transition)
            if evaluated then evaluated[transition] = is_enabled end
        end
        if is_enabled then return transition end
    end
end

local function contains(list, item)
    for i = 1, #list do
        if list[i] == item then return true end
    end
    return false
end

-- Selects the transitions for an event, nil for eventless ones; nil when there are none.
local function select_transitions(ctx, event)
    local lists = configurations.list_candidates(ctx.program, ctx.config, event)
    if not lists[1] then return nil end
    if not lists[2] then
        local transition = find_enabled(ctx, lists[1])
        return transition and { transition }
    end
    local enabled, evaluated = {}, {}
    for i = 1, #lists do
        local transition = find_enabled(ctx, lists[i], evaluated)
        if transition and not contains(enabled, transition) then enabled[#enabled + 1] = transition end
    end
    if enabled[2] then return configurations.select_compatible(ctx.program, ctx.config, enabled, ctx.raw) end
    return enabled[1] and enabled
end
chart.select_transitions = select_transitions

-- Exiting states

local function stop_children(ctx, state)
    local children = sends.read_children(ctx)
    for invoke, child in pairs(children) do
        charge(1)
        if not state or child.state == state then
            charge(CHILD)
            sends.add_message(ctx, 'stop', child, { invoke = invoke })
            children[invoke] = nil
            ctx.children_changed = true
        end
    end
end

local function drop_started(ctx, state)
    local kept = {}
    charge(#ctx.started)
    for _, started in ipairs(ctx.started) do
        if started.state ~= state then kept[#kept + 1] = started end
    end
    ctx.started = kept[1] and kept or NONE
end

local function exit_state(ctx, index)
    local state = ctx.program.states[index]
    if state.exit then run_block(ctx, state.exit) end
    ctx.exited[index], ctx.entered[index], ctx.fresh[index] = true, nil, nil
    if state.invokes_machines then stop_children(ctx, index) end
    if ctx.started[1] then drop_started(ctx, index) end
    if state.timed then timers.disarm(ctx, index) end
end

-- Entering states

local function arm_timers(ctx, state)
    for _, transition in ipairs(state.timed) do
        local delay = run_block(ctx, function() return durations.parse(transition.delay(ctx)) end)
        if delay then
            charge(TIMER)
            timers.arm(ctx, { timers.make_id(ctx), ctx.now + delay, transition.events[1], state.index, '', '', '', 0 })
        end
    end
end

-- Tells whether a region is in a final state, once `plan` has entered the states up to `upto`.
local function is_in_final(program, plan, index, upto)
    local state = program.states[index]
    if state.kind == 'parallel' then
        for _, child in ipairs(state.children) do
            if not is_in_final(program, plan, child, upto) then return false end
        end
        return true
    end
    for _, child in ipairs(state.children) do
        if program.states[child].final and plan.config.active[child] and not (plan.entering[child] and child > upto) then
            return true
        end
    end
    return false
end

local function make_output(ctx, tree)
    local value
    if tree then value = run_block(ctx, tree) end
    if value == nil then return NO_PAYLOAD end
    values.encode('the done data', value)
    return value
end

-- A final state finishes its parent, and each parallel state further up whose regions are all finished. SCXML looks at one
-- parallel state only; here all of them get their done event, so that none waits for ever.
local function finish_region(ctx, plan, state)
    local states = ctx.program.states
    local parent = states[state.parent]
    if not parent or parent.root then
        ctx.finished = state
        return
    end
    sends.raise(ctx, parent.done, make_output(ctx, state.donedata), { type = 'platform' })
    local above = states[parent.parent]
    while above and above.kind == 'parallel' and is_in_final(ctx.program, plan, above.index, state.index) do
        if above.root then
            ctx.finished = state
            return
        end
        sends.raise(ctx, above.done, NO_PAYLOAD, { type = 'platform' })
        above = states[above.parent]
    end
end

chart.finish_region = finish_region

local function enter_state(ctx, plan, index)
    local state = ctx.program.states[index]
    ctx.entered[index], ctx.fresh[index] = true, true
    if not ctx.chart then ctx.state = index end
    if ctx.program.tracks_active then ctx.active[index] = true end
    if state.entry then run_block(ctx, state.entry) end
    if plan.by_default[index] and state.initial.actions then run_block(ctx, state.initial.actions) end
    local default = plan.after_entry[index]
    if default then run_block(ctx, default) end
    if state.timed then arm_timers(ctx, state) end
    if state.final then finish_region(ctx, plan, state) end
end

local function copy_set(set)
    local made = {}
    for key, value in pairs(set) do
        charge(0.5)
        made[key] = value
    end
    return made
end

-- `executables`: what has actions between exit and entry: transitions, or the initial entry of the machine.
local function apply_plan(ctx, plan, executables)
    local precise = ctx.program.tracks_active
    if ctx.chart then charge((#plan.leave + #plan.enter) * STATE) end
    if precise then ctx.active = copy_set(ctx.active) end
    for _, record in ipairs(plan.records) do
        if ctx.raw[record[1]] ~= record[2] then ctx.raw[record[1]], ctx.changed_meta[record[1]] = record[2], true end
    end
    for _, index in ipairs(plan.leave) do
        exit_state(ctx, index)
        if precise then ctx.active[index] = nil end
    end
    for i = 1, #executables do
        if executables[i].actions then run_block(ctx, executables[i].actions) end
    end
    for _, index in ipairs(plan.enter) do enter_state(ctx, plan, index) end
    ctx.config, ctx.active, ctx.state = plan.config, plan.config.active, plan.config.leaves[1]
    if plan.leave[1] or plan.enter[1] then ctx.moved = true end
end

local function microstep(ctx, transitions)
    ctx.microsteps = ctx.microsteps + 1
    if ctx.chart or ctx.microsteps > 1 then charge(MICROSTEP) end
    if ctx.microsteps > MAX_MICROSTEPS then
        throw_final('more than ' .. MAX_MICROSTEPS .. ' microsteps: the machine does not come to rest')
    end
    for i = 1, #transitions do shared_lists.append(ctx, 'edges', transitions[i]) end
    apply_plan(ctx, configurations.plan(ctx.program, ctx.config, transitions, ctx.raw), transitions)
end

-- Invokes

-- Makes an id that is never used again, not even by a later instance of the same id.
local function make_child_id(ctx, invoke)
    local number = string.format('%.0f', ctx.raw._created) .. '.' .. timers.make_id(ctx)
    local id = ctx.id .. '~' .. invoke .. '~' .. number
    return #id <= 200 and id or redis.sha1hex(ctx.id) .. '~' .. redis.sha1hex(invoke) .. '~' .. number
end

local function start_child(ctx, invoke, state)
    local machine = type(invoke.machine) == 'function' and invoke.machine(ctx) or invoke.machine
    charge(CHILD)
    local child = { machine = values.check_text(machine), id = make_child_id(ctx, invoke.id), state = state }
    local data = invoke.make_input and invoke.make_input(ctx)
    if invoke.autoforward then child.autoforward = true end
    local body = { invoke = invoke.id, data = values.encode('the input of ' .. invoke.id, data) }
    body.computed = not ctx.program.invoked_machines[child.machine] or nil
    if invoke.idlocation then fields.write(ctx, invoke.idlocation, invoke.id) end
    sends.add_message(ctx, 'start', child, body)
    sends.read_children(ctx)[invoke.id] = child
    ctx.children_changed = true
end

local function start_invoke(ctx, invoke, state)
    if invoke.machine then return start_child(ctx, invoke, state) end
    charge(job_requests.JOB)
    local plan = job_requests.plan(ctx, invoke, 'the input of ' .. invoke.id)
    job_requests.check_unique(ctx, invoke, plan)
    shared_lists.append(ctx, 'started', { invoke = invoke, plan = plan, state = state })
end

-- Starts the invokes of states that were entered and are still active, in document order.
local function start_invokes(ctx)
    local states = {}
    for index in pairs(ctx.entered) do
        if ctx.program.states[index].invokes[1] then states[#states + 1] = index end
    end
    ctx.entered = {}
    table.sort(states)
    for _, index in ipairs(states) do
        for _, invoke in ipairs(ctx.program.states[index].invokes) do
            run_block(ctx, function() start_invoke(ctx, invoke, index) end)
        end
    end
end

-- Runs `finalize` for an event of a child, and forwards the event to children with autoforward (SCXML 6.4, 6.5). The
-- engine's own events are not forwarded: a child would take the end of another child for that of its own.
local function forward_event(ctx, event)
    local facts = event[3] or NO_PAYLOAD
    for id, child in pairs(sends.read_children(ctx)) do
        charge(1)
        if facts.invokeid == id then
            local finalize = ctx.program.finalizers[id]
            if finalize then run_block(ctx, finalize) end
        end
        if child.autoforward and not reserved_events.is_reserved(event[1]) then
            local data = values.encode('the data of ' .. event[1], event[2])
            sends.add_message(ctx, 'event', child, { event = event[1], data = data, sendid = facts.sendid })
        end
    end
end

-- Running

local function process_internal(ctx, event)
    ctx.events = ctx.events + 1
    if ctx.chart then charge(EVENT + #ctx.internal / 10) end
    if ctx.events > MAX_EVENTS then throw_final('more than ' .. MAX_EVENTS .. ' events in one step') end
    ctx.event, ctx.payload = event, event[2]
    return select_transitions(ctx, event[1])
end

local function process_external(ctx, event)
    ctx.event, ctx.payload = event, event[2]
    if ctx.program.finalizers and ctx.raw._children or ctx.children then
        forward_event(ctx, event)
        local ended = event[3] and event[3].ended
        if ended and ctx.children[ended] then ctx.children[ended], ctx.children_changed = nil, true end
    end
    return process_internal(ctx, event)
end

-- Finds the next transitions of the macrostep: eventless ones, then those of internal events.
local function find_next(ctx)
    local eventless = ctx.program.eventless
    local transitions = eventless and select_transitions(ctx, nil)
    while not transitions and ctx.internal[1] do
        transitions = process_internal(ctx, table.remove(ctx.internal, 1))
        if not transitions and eventless then transitions = select_transitions(ctx, nil) end
    end
    return transitions
end

local exit_all

-- Runs until the machine is stable: internal events first, then the events that the instance sent to itself.
local function run_to_completion(ctx)
    while not ctx.finished do
        local transitions = find_next(ctx)
        if not transitions then
            if ctx.program.invokes_any then start_invokes(ctx) end
            if not ctx.internal[1] then
                if not ctx.external[1] then break end
                transitions = process_external(ctx, table.remove(ctx.external, 1))
            end
        end
        if transitions then microstep(ctx, transitions) end
    end
    if ctx.finished and ctx.chart then exit_all(ctx) end
    if ctx.needs_size_check then fields.check_size(ctx) end
end

-- Ends the instance for others: children and timers stop, the parent gets the done data.
local function end_instance(ctx, data)
    stop_children(ctx)
    timers.clear(ctx)
    ctx.started, ctx.has_ended = NONE, true
    local parent = sends.read_parent(ctx)
    if not parent then return end
    sends.add_message(ctx, 'done', parent, { invoke = parent.invoke, data = values.encode('the done data', data) })
    for _, message in ipairs(ctx.messages) do message.body.last = message.body.invoke == parent.invoke or nil end
end

-- Exits all states from the inside out, then sends the done data to the parent. The configuration stays, so that readers see
-- how the instance ended.
exit_all = function(ctx)
    local all, final = ctx.config.all, ctx.finished
    charge(#all * STATE)
    local data = make_output(ctx, ctx.program.output or final.donedata)
    if ctx.program.tracks_active then ctx.active = copy_set(ctx.active) end
    for i = #all, 1, -1 do
        local state = ctx.program.states[all[i]]
        if state.exit then run_block(ctx, state.exit) end
        ctx.exited[all[i]] = true
        if ctx.program.tracks_active then ctx.active[all[i]] = nil end
    end
    end_instance(ctx, data)
end

-- Tells whether the step changed anything.
local function has_effects(ctx)
    return ctx.edges[1] ~= nil or ctx.messages[1] ~= nil or ctx.changed[1] ~= nil or ctx.effects[1] ~= nil
        or ctx.children_changed == true or ctx.timers_changed == true
end

local function try_step(ctx, event)
    local transitions = process_external(ctx, event)
    if transitions and ctx.permit and permits.is_barred(ctx, transitions) then return false end
    -- A failed guard has raised error.execution, which is processed like any other event.
    if not transitions and not ctx.internal[1] then return has_effects(ctx) end
    if transitions then microstep(ctx, transitions) end
    run_to_completion(ctx)
    return has_effects(ctx)
end

-- Takes one macrostep. Answers true when something changed, false when no transition was enabled; nil and why when it
-- failed.
function chart.step(ctx, name, payload, facts)
    if chart.is_finished(ctx) then return false end
    local ok, taken = pcall(try_step, ctx, { name, payload or NO_PAYLOAD, facts or EXTERNAL })
    if ok then return taken end
    return nil, describe_failure(ctx, taken)
end

local function try_delayed(ctx, target, event, payload, sendid)
    local facts = { sendid = sendid, origin = sends.make_address(ctx), origintype = sends.PROCESSOR }
    sends.send_now(ctx, target, event, payload, facts)
    run_to_completion(ctx)
    return ctx.edges[1] ~= nil or ctx.changed[1] ~= nil or ctx.effects[1] ~= nil
end

-- Fires an event that was sent with a delay, at its target. Answers like `chart.step`; a message alone is no step.
function chart.fire_delayed(ctx, target, event, payload, sendid)
    local ok, taken = pcall(try_delayed, ctx, target, event, values.to_nil(payload), sendid)
    if ok then return taken end
    return nil, describe_failure(ctx, taken)
end

local function try_start(ctx)
    local initial = ctx.program.initial
    local plan = initial.plan or configurations.plan_entry(ctx.program, initial.targets, {})
    initial.plan = plan
    apply_plan(ctx, plan, { initial })
    ctx.config_before = nil
    run_to_completion(ctx)
    fields.check_size(ctx)
end

-- Takes the first macrostep of a new instance.
function chart.start(ctx)
    local ok, caught = pcall(try_start, ctx)
    if ok then return true end
    return nil, describe_failure(ctx, caught)
end

-- Stops an instance before its end: runs exit actions only, and refuses none of their messages for a full outbox.
function chart.stop(ctx)
    local all = ctx.config.all
    ctx.is_stopping = true
    for i = #all, 1, -1 do
        local exit = ctx.program.states[all[i]].exit
        if exit then pcall(exit, ctx) end
    end
    ctx.internal, ctx.external = NONE, NONE
    stop_children(ctx)
    timers.clear(ctx)
end

-- Stops everything that the instance invoked.
function chart.stop_children(ctx)
    stop_children(ctx)
end

-- Finds the state with which an instance in this configuration has ended; nil while it has not.
local function find_final(ctx, plan)
    local states, root = ctx.program.states, ctx.program.states[1]
    local whole = root.root and root.kind == 'parallel'
    for _, leaf in ipairs(plan.config.leaves) do
        local state = states[leaf]
        if whole then
            if is_in_final(ctx.program, plan, 1, math.huge) then return state end
        elseif state.final and (state.parent == 0 or states[state.parent].root) then
            return state
        end
    end
end

-- For the move of an instance to another version, which changes a configuration without transitions.
chart.find_final, chart.end_instance, chart.make_output = find_final, end_instance, make_output
chart.start_invoke, chart.run_to_completion = start_invoke, run_to_completion

-- A repair: enters the states without running actions. Timers, jobs and, at the end of an instance, the message to its
-- parent follow as after a step.
function chart.enter_states(ctx, targets)
    local plan = configurations.plan_entry(ctx.program, targets, ctx.raw)
    for _, index in ipairs(ctx.config.all) do
        ctx.exited[index] = true
        if ctx.program.states[index].invokes_machines then stop_children(ctx, index) end
        timers.disarm(ctx, index)
    end
    for _, index in ipairs(plan.enter) do
        local state = ctx.program.states[index]
        ctx.entered[index], ctx.fresh[index] = true, true
        if state.timed then arm_timers(ctx, state) end
    end
    ctx.config, ctx.active, ctx.moved, ctx.state = plan.config, plan.config.active, true, plan.config.leaves[1]
    local final = ctx.chart and find_final(ctx, plan)
    if final then return end_instance(ctx, make_output(ctx, ctx.program.output or final.donedata)) end
    if ctx.raw._done then ctx.raw._done, ctx.changed_meta._done = nil, true end
    start_invokes(ctx)
end

return chart
