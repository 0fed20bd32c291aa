-- needs: configurations, durations, fields, job_requests, permits, reserved_events, sends, shared_lists, timers
-- needs: values, work_budget
-- The interpreter of whole statecharts: SCXML, appendix D. Pure: it changes the step's own picture of the instance and
-- collects what is to happen outside; no key is touched. Machines without nesting, timers and messages never come
-- here: `core` has a shorter way for them.
local chart = {}

local MAX_MICROSTEPS = 1000
local MICROSTEP, EVENT, STATE, GUARD, TIMER, CHILD = 40, 10, 8, 8, 40, 80 -- units of work
local MAX_EVENTS = 10000 -- handled in one step, most of them without anyone listening
local NO_PAYLOAD = {}
local NONE = shared_lists.NONE
local pcall, type, charge = pcall, type, work_budget.charge

-- What one step works on; nil when the definition has no such configuration. One table of known size: it is made for
-- every call.
function chart.context(program, id, raw, now)
    local text, config = raw._state, nil
    if text then
        config = configurations.named(program, text)
        if not config then return nil end
    end
    return {
        chart = true,
        program = program,
        id = id,
        raw = raw,
        now = now,
        key = nil, -- of the instance's hash; set by whoever read it
        config = config,
        was = config,
        active = config and config.active or {},
        version = tonumber(raw._version),
        payload = NO_PAYLOAD,
        changed = { nil, nil, nil, nil },
        effects = NONE,
        internal = NONE,
        external = NONE,
        mail = NONE,
        started = NONE, -- work of invokes that begin with this step
        edges = NONE,
        entered = {}, -- states whose invokes have not begun
        fresh = {}, -- states entered in this step and still active
        left = {}, -- states left in this step
        noted = {}, -- fields of the engine's own that changed
        microsteps = 0,
        events = 0,
        moved = false,
    }
end

-- Not to be caught by any block: the step as a whole has gone too far.
local function give_up(message)
    error({ sb = message, hard = true })
end

-- What fails becomes error.execution where the definition wants it so, and ends this block only (SCXML 5.10, 3.12).
local function run(ctx, block)
    if not ctx.program.raises then return block(ctx) end
    local ok, caught = pcall(block, ctx)
    if ok then return caught end
    if type(caught) ~= 'table' or not caught.sb or caught.hard then error(caught, 0) end
    sends.platform(ctx, 'error.execution', caught.sb, caught.sendid)
end
chart.run = run

-- Does a condition hold? One that fails does not (SCXML 5.9.1), except inside an action of a machine that refuses.
function chart.open(ctx, guard)
    if not guard then return true end
    if not ctx.program.raises then return values.truth(guard(ctx)) end
    local ok, value = pcall(guard, ctx)
    if ok then return values.truth(value) end
    work_budget.rethrow_exceeded(value)
    sends.platform(ctx, 'error.execution', values.message(value))
    return false
end

-- What a step failed with, as text. Nothing is counted from here on.
local function failure(ctx, caught)
    ctx.work, ctx.exhausted = work_budget.count_spent(), work_budget.is_exceeded()
    work_budget.stop()
    return values.message(caught)
end
chart.failure = failure

-- Selecting

local function holds(ctx, transition)
    local guard = transition.guard
    if not guard then return true end
    local ok, value = pcall(guard, ctx)
    if ok then return value == true or values.truth(value) end
    work_budget.rethrow_exceeded(value)
    if ctx.program.raises then sends.platform(ctx, 'error.execution', values.message(value)) end
    return false
end

-- The guard of a transition that several leaves inherit is asked once.
local function first_open(ctx, list, asked)
    charge(#list * GUARD)
    for i = 1, #list do
        local transition = list[i]
        local verdict = asked and asked[transition]
        if verdict == nil then
            verdict = holds(ctx, transition)
            if asked then asked[transition] = verdict end
        end
        if verdict then return transition end
    end
end

local function contains(list, item)
    for i = 1, #list do
        if list[i] == item then return true end
    end
    return false
end

-- The transitions to take for an event (nil: eventless ones), or nil.
local function select(ctx, event)
    local lists = configurations.candidates(ctx.program, ctx.config, event)
    if not lists[1] then return nil end
    if not lists[2] then
        local transition = first_open(ctx, lists[1])
        return transition and { transition }
    end
    local enabled, asked = {}, {}
    for i = 1, #lists do
        local transition = first_open(ctx, lists[i], asked)
        if transition and not contains(enabled, transition) then enabled[#enabled + 1] = transition end
    end
    if enabled[2] then return configurations.compatible(ctx.program, ctx.config, enabled, ctx.raw) end
    return enabled[1] and enabled
end
chart.select = select

-- Leaving

local function stop_children(ctx, state)
    local children = sends.children(ctx)
    for invoke, child in pairs(children) do
        charge(1)
        if not state or child.state == state then
            charge(CHILD)
            sends.mail(ctx, 'stop', child, { invoke = invoke })
            children[invoke] = nil
            ctx.children_changed = true
        end
    end
end

local function forget_started(ctx, state)
    local kept = {}
    charge(#ctx.started)
    for _, started in ipairs(ctx.started) do
        if started.state ~= state then kept[#kept + 1] = started end
    end
    ctx.started = kept[1] and kept or NONE
end

local function leave(ctx, index)
    local state = ctx.program.states[index]
    if state.exit then run(ctx, state.exit) end
    ctx.left[index], ctx.entered[index], ctx.fresh[index] = true, nil, nil
    if state.hosts then stop_children(ctx, index) end
    if ctx.started[1] then forget_started(ctx, index) end
    if state.timed then timers.disarm(ctx, index) end
end

-- Entering

local function arm(ctx, state)
    for _, transition in ipairs(state.timed) do
        local delay = run(ctx, function() return durations.parse(transition.delay(ctx)) end)
        if delay then
            charge(TIMER)
            timers.arm(ctx, { timers.make_id(ctx), ctx.now + delay, transition.events[1], state.index, '', '', '', 0 })
        end
    end
end

-- Is the region in a final state, as far as the entering of `plan` has come (up to the state `upto`)?
local function in_final(program, plan, index, upto)
    local state = program.states[index]
    if state.kind == 'parallel' then
        for _, child in ipairs(state.children) do
            if not in_final(program, plan, child, upto) then return false end
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

local function output(ctx, tree)
    local value
    if tree then value = run(ctx, tree) end
    if value == nil then return NO_PAYLOAD end
    values.encoded('the done data', value)
    return value
end

-- A final state ends its parent, and a parallel one further up whose regions have all ended with it. Where the
-- recommendation looks at one parallel state only, all of them are told here: none may wait for ever.
local function done(ctx, plan, state)
    local states = ctx.program.states
    local parent = states[state.parent]
    if not parent or parent.root then
        ctx.finished = state
        return
    end
    sends.internal(ctx, parent.done, output(ctx, state.donedata), { type = 'platform' })
    local above = states[parent.parent]
    while above and above.kind == 'parallel' and in_final(ctx.program, plan, above.index, state.index) do
        if above.root then
            ctx.finished = state
            return
        end
        sends.internal(ctx, above.done, NO_PAYLOAD, { type = 'platform' })
        above = states[above.parent]
    end
end

local function enter(ctx, plan, index)
    local state = ctx.program.states[index]
    ctx.entered[index], ctx.fresh[index] = true, true
    if ctx.program.precise then ctx.active[index] = true end
    if state.entry then run(ctx, state.entry) end
    if plan.by_default[index] and state.initial.actions then run(ctx, state.initial.actions) end
    local default = plan.after_entry[index]
    if default then run(ctx, default) end
    if state.timed then arm(ctx, state) end
    if state.final then done(ctx, plan, state) end
end

local function copy(set)
    local made = {}
    for key, value in pairs(set) do
        charge(0.5)
        made[key] = value
    end
    return made
end

-- `between`: whatever has actions of its own: transitions, or the machine's beginning.
local function carry_out(ctx, plan, between)
    local precise = ctx.program.precise
    charge((#plan.leave + #plan.enter) * STATE)
    if precise then ctx.active = copy(ctx.active) end
    for _, record in ipairs(plan.records) do
        if ctx.raw[record[1]] ~= record[2] then ctx.raw[record[1]], ctx.noted[record[1]] = record[2], true end
    end
    for _, index in ipairs(plan.leave) do
        leave(ctx, index)
        if precise then ctx.active[index] = nil end
    end
    for i = 1, #between do
        if between[i].actions then run(ctx, between[i].actions) end
    end
    for _, index in ipairs(plan.enter) do enter(ctx, plan, index) end
    ctx.config, ctx.active = plan.config, plan.config.active
    if plan.leave[1] or plan.enter[1] then ctx.moved = true end
end

local function microstep(ctx, transitions)
    ctx.microsteps = ctx.microsteps + 1
    charge(MICROSTEP)
    if ctx.microsteps > MAX_MICROSTEPS then
        give_up('more than ' .. MAX_MICROSTEPS .. ' microsteps: the machine does not come to rest')
    end
    for i = 1, #transitions do shared_lists.append(ctx, 'edges', transitions[i]) end
    carry_out(ctx, configurations.plan(ctx.program, ctx.config, transitions, ctx.raw), transitions)
end

-- Invokes

-- Never used again, not even by another instance that lives under the same id later.
local function child_id(ctx, invoke)
    local number = string.format('%.0f', ctx.raw._created) .. '.' .. timers.make_id(ctx)
    local id = ctx.id .. '~' .. invoke .. '~' .. number
    return #id <= 200 and id or redis.sha1hex(ctx.id) .. '~' .. redis.sha1hex(invoke) .. '~' .. number
end

local function start_child(ctx, invoke, state)
    local machine = type(invoke.machine) == 'function' and invoke.machine(ctx) or invoke.machine
    charge(CHILD)
    local child = { machine = values.text(machine), id = child_id(ctx, invoke.id), state = state }
    local data = invoke.make_input and invoke.make_input(ctx)
    if invoke.autoforward then child.autoforward = true end
    local body = { invoke = invoke.id, data = values.encoded('the input of ' .. invoke.id, data) }
    body.computed = not ctx.program.reaches[child.machine] or nil
    if invoke.idlocation then fields.write(ctx, invoke.idlocation, invoke.id) end
    sends.mail(ctx, 'start', child, body)
    sends.children(ctx)[invoke.id] = child
    ctx.children_changed = true
end

local function start(ctx, invoke, state)
    if invoke.machine then return start_child(ctx, invoke, state) end
    charge(job_requests.JOB)
    local plan = job_requests.plan(ctx, invoke, 'the input of ' .. invoke.id)
    job_requests.claim(ctx, invoke, plan)
    shared_lists.append(ctx, 'started', { invoke = invoke, plan = plan, state = state })
end

-- States entered since, and still active, begin what they invoke, in document order.
local function start_invokes(ctx)
    local states = {}
    for index in pairs(ctx.entered) do
        if ctx.program.states[index].invokes[1] then states[#states + 1] = index end
    end
    ctx.entered = {}
    table.sort(states)
    for _, index in ipairs(states) do
        for _, invoke in ipairs(ctx.program.states[index].invokes) do
            run(ctx, function() start(ctx, invoke, index) end)
        end
    end
end

-- What a child's event does before anything else, and which children hear of an event (SCXML 6.4, 6.5). What the engine told
-- this instance stays here: passed on, the end of one child's work would be taken for the end of another's.
local function pass_on(ctx, event)
    local facts = event[3] or NO_PAYLOAD
    for id, child in pairs(sends.children(ctx)) do
        charge(1)
        if facts.invokeid == id then
            local finalize = ctx.program.finalizers[id]
            if finalize then run(ctx, finalize) end
        end
        if child.autoforward and not reserved_events.is_reserved(event[1]) then
            local data = values.encoded('the data of ' .. event[1], event[2])
            sends.mail(ctx, 'event', child, { event = event[1], data = data, sendid = facts.sendid })
        end
    end
end

-- Running

local function consider(ctx, event)
    ctx.events = ctx.events + 1
    charge(EVENT + #ctx.internal / 10)
    if ctx.events > MAX_EVENTS then give_up('more than ' .. MAX_EVENTS .. ' events in one step') end
    ctx.event, ctx.payload = event, event[2]
    return select(ctx, event[1])
end

local function consider_external(ctx, event)
    ctx.event, ctx.payload = event, event[2]
    if ctx.program.finalizers and ctx.raw._children or ctx.children then
        pass_on(ctx, event)
        local ended = event[3] and event[3].ended
        if ended and ctx.children[ended] then ctx.children[ended], ctx.children_changed = nil, true end
    end
    return consider(ctx, event)
end

-- The next transitions of the macrostep: eventless ones, then what internal events open.
local function following(ctx)
    local eventless = ctx.program.eventless
    local transitions = eventless and select(ctx, nil)
    while not transitions and ctx.internal[1] do
        transitions = consider(ctx, table.remove(ctx.internal, 1))
        if not transitions and eventless then transitions = select(ctx, nil) end
    end
    return transitions
end

local exit_all

-- Until nothing is left to do: internal events first, then the events the instance sent itself.
local function settle(ctx)
    while not ctx.finished do
        local transitions = following(ctx)
        if not transitions then
            if ctx.program.invokes_any then start_invokes(ctx) end
            if not ctx.internal[1] then
                if not ctx.external[1] then break end
                transitions = consider_external(ctx, table.remove(ctx.external, 1))
            end
        end
        if transitions then microstep(ctx, transitions) end
    end
    if ctx.finished then exit_all(ctx) end
    if ctx.heavy then fields.check_size(ctx) end
end

-- What the end of an instance means to others: children and timers end, whoever invoked it gets the done data.
local function conclude(ctx, data)
    stop_children(ctx)
    timers.clear(ctx)
    ctx.started, ctx.over = NONE, true
    local parent = sends.parent(ctx)
    if not parent then return end
    sends.mail(ctx, 'done', parent, { invoke = parent.invoke, data = values.encoded('the done data', data) })
    for _, mail in ipairs(ctx.mail) do mail.body.last = mail.body.invoke == parent.invoke or nil end
end

-- The end of an instance: exit actions from the inside out, then its done data to whoever invoked it. The configuration
-- stays, so that everyone can see how it ended.
exit_all = function(ctx)
    local all, final = ctx.config.all, ctx.finished
    charge(#all * STATE)
    local data = output(ctx, ctx.program.output or final.donedata)
    if ctx.program.precise then ctx.active = copy(ctx.active) end
    for i = #all, 1, -1 do
        local state = ctx.program.states[all[i]]
        if state.exit then run(ctx, state.exit) end
        ctx.left[all[i]] = true
        if ctx.program.precise then ctx.active[all[i]] = nil end
    end
    conclude(ctx, data)
end

-- Did anything come of it?
local function something(ctx)
    return ctx.edges[1] ~= nil or ctx.mail[1] ~= nil or ctx.changed[1] ~= nil or ctx.effects[1] ~= nil
        or ctx.children_changed == true or ctx.timers_changed == true
end

local function attempt(ctx, event)
    local transitions = consider_external(ctx, event)
    if transitions and ctx.permit and permits.bars(ctx, transitions) then return false end
    -- A guard that failed has told so: that is handled like any other event.
    if not transitions and not ctx.internal[1] then return something(ctx) end
    if transitions then microstep(ctx, transitions) end
    settle(ctx)
    return something(ctx)
end

-- One macrostep. Answers true when something happened; false when nothing could; nil and why when it failed.
function chart.step(ctx, name, payload, facts)
    if ctx.raw._done then return false end
    local ok, taken = pcall(attempt, ctx, { name, payload or NO_PAYLOAD, facts or { type = 'external' } })
    if ok then return taken end
    return nil, failure(ctx, taken)
end

local function forward(ctx, target, event, payload, sendid)
    local facts = { sendid = sendid, origin = sends.address(ctx), origintype = sends.PROCESSOR }
    sends.route(ctx, target, event, payload, facts)
    settle(ctx)
    return ctx.edges[1] ~= nil or ctx.changed[1] ~= nil or ctx.effects[1] ~= nil
end

-- An event that was sent with a delay: to whomever it is for. Answers as `chart.step` does; a message alone is no step.
function chart.forward(ctx, target, event, payload, sendid)
    local ok, taken = pcall(forward, ctx, target, event, values.plain(payload), sendid)
    if ok then return taken end
    return nil, failure(ctx, taken)
end

local function begin(ctx)
    local initial = ctx.program.initial
    local plan = configurations.entered(ctx.program, initial.targets, {})
    carry_out(ctx, plan, { initial })
    ctx.was = nil
    settle(ctx)
    fields.check_size(ctx)
end

-- The first macrostep of a new instance.
function chart.start(ctx)
    local ok, caught = pcall(begin, ctx)
    if ok then return true end
    return nil, failure(ctx, caught)
end

-- The end before its time: exit actions, and nothing else.
function chart.stop(ctx)
    local all = ctx.config.all
    for i = #all, 1, -1 do
        local exit = ctx.program.states[all[i]].exit
        if exit then pcall(exit, ctx) end
    end
    ctx.internal, ctx.external = NONE, NONE
    stop_children(ctx)
    timers.clear(ctx)
end

-- Everything the instance invoked is to end.
function chart.dismiss(ctx)
    stop_children(ctx)
end

-- The state an instance that was put here has ended with, if it has.
local function ended(ctx, plan)
    local states, root = ctx.program.states, ctx.program.states[1]
    local whole = root.root and root.kind == 'parallel'
    for _, leaf in ipairs(plan.config.leaves) do
        local state = states[leaf]
        if whole then
            if in_final(ctx.program, plan, 1, math.huge) then return state end
        elseif state.final and (state.parent == 0 or states[state.parent].root) then
            return state
        end
    end
end

-- A repair: what entering these states would make active, without any action. Timers, work and, at the end of an
-- instance, the word to whoever invoked it follow as after a step.
function chart.place(ctx, targets)
    local plan = configurations.entered(ctx.program, targets, ctx.raw)
    for _, index in ipairs(ctx.config.all) do
        ctx.left[index] = true
        if ctx.program.states[index].hosts then stop_children(ctx, index) end
        timers.disarm(ctx, index)
    end
    for _, index in ipairs(plan.enter) do
        local state = ctx.program.states[index]
        ctx.entered[index], ctx.fresh[index] = true, true
        if state.timed then arm(ctx, state) end
    end
    ctx.config, ctx.active, ctx.moved = plan.config, plan.config.active, true
    local final = ended(ctx, plan)
    if final then return conclude(ctx, output(ctx, ctx.program.output or final.donedata)) end
    if ctx.raw._done then ctx.raw._done, ctx.noted._done = nil, true end
    start_invokes(ctx)
end

return chart
