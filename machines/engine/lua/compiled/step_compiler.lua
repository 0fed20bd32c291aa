-- needs: action_source, chart, chart_state, configurations, durations, lua_source, refusals, step_source, step_writes, timers
-- Compiles the step of one event in one configuration to a Lua function, for instances whose hash has the same fields in the
-- same order: constants, fields, keys and transitions are in place, and nothing is looked up. The function reads from the
-- values of HGETALL, and writes what `step_plan` says. What follows from structure alone is asked of the interpreter's own
-- functions once, when the step is compiled: candidates, exit and entry sets, done events, the new configuration. Guards and
-- values are left to the source, and the writes to `step_writes`. Where a guard decides, the source goes both ways. Whatever
-- the interpreter has to do answers nil before anything is written: messages, children, jobs whose input is an expression,
-- other actions than `set`, `unset`, `enqueue` and `raise` of a plain event, a guard or value that fails. Where no transition
-- is selected, `refusals` answers. A step may be the end of a job (`ending`), and one of many in a call (`batch`).
local step_compiler = {}

local MAX_MICROSTEPS = 12
local MAX_PATHS = 20 -- of one step
local MAX_STATES = 200 -- left and entered in one microstep
local MAX_TRANSITIONS = 40 -- that may be selected
local MAX_MEMORIES = 32 -- texts of histories for which one step is compiled
local TIMER_EVENT = '^after%.t%d+$'

local concat, find, format = table.concat, string.find, string.format
local line, give_up, attempt, copy = step_source.line, step_source.give_up, step_source.attempt, step_source.copy

-- Paths

-- Writes what happens where `test` holds; behind it the writer knows what it knew before.
local function branch(writer, test, write)
    local restore, parts = step_source.remember(writer), writer.parts
    line(writer, 'if ' .. test .. ' then')
    attempt(writer, write)
    line(writer, 'end')
    restore()
    writer.parts = parts
end

-- Selecting transitions

local function write_guard(writer, path, transition)
    if not transition.tree then return 'true' end
    writer.active = path.config.active
    return step_source.write_test(step_source.write(transition.tree, writer))
end

local function select_chosen(writer, path)
    local program, chosen = writer.program, path.chosen
    if not chosen[2] then return chosen[1] and chosen end
    for _, transition in ipairs(chosen) do chart_state.note_memory(writer, transition) end
    return configurations.select_compatible(program, path.config, chosen, path.memory)
end

local function pick(path, transition)
    for _, other in ipairs(path.chosen) do
        if other == transition then return end
    end
    path.chosen[#path.chosen + 1] = transition
end

-- Writes the choice of one transition from each list, from number `at` of list number `number` on; then `go_on` for what was
-- selected.
local function write_choice(writer, path, lists, number, at, go_on)
    local list = lists[number]
    if not list then return go_on(path, select_chosen(writer, path)) end
    local transition = list[at]
    if not transition then return write_choice(writer, path, lists, number + 1, 1, go_on) end
    local enabled = path.outcomes[transition]
    if enabled == nil then
        local test = write_guard(writer, path, transition)
        if test ~= 'true' and test ~= 'false' then
            branch(writer, test, function()
                local taken = chart_state.fork(path)
                taken.outcomes[transition] = true
                pick(taken, transition)
                write_choice(writer, taken, lists, number + 1, 1, go_on)
            end)
            path.outcomes[transition] = false
            attempt(writer, function() write_choice(writer, path, lists, number, at + 1, go_on) end)
            return
        end
        enabled = test == 'true'
        path.outcomes[transition] = enabled
    end
    if enabled then
        pick(path, transition)
        return write_choice(writer, path, lists, number + 1, 1, go_on)
    end
    return write_choice(writer, path, lists, number, at + 1, go_on)
end

-- Writes the selection for an event, nil for eventless transitions.
local function write_selection(writer, path, event, go_on)
    local lists, count = configurations.list_candidates(writer.program, path.config, event), 0
    for _, list in ipairs(lists) do count = count + #list end
    if count > MAX_TRANSITIONS then give_up(writer) end
    path.chosen, path.outcomes = {}, {}
    return write_choice(writer, path, lists, 1, 1, go_on)
end

-- Timers

local function open_timers(program, id, revision, stored, now)
    return { program = program, id = id, revision = tonumber(revision), raw = { _timers = stored }, now = now }
end

local function arm_timer(timed, delay, event, state)
    timers.arm(timed, { timers.make_id(timed), timed.now + delay, event, state, '', '', '', 0 })
end

-- The names that only the source of charts uses.
local NAMES = {
    { 'open_timers', open_timers }, { 'arm_timer', arm_timer }, { 'disarm', timers.disarm }, { 'clear_timers', timers.clear },
    { 'parse_duration', durations.parse },
}

local function open_timers_of(writer, path)
    if path.timed then return end
    local position = writer.positions._timers
    line(writer, format('timed = open_timers(program, id, f[%d], %s, now)', writer.positions._version,
        position and 'f[' .. position .. ']' or 'nil'))
    path.timed = true
end

local function has_timers(writer, path)
    return path.timed or writer.positions._timers
end

local function write_disarm(writer, path, state)
    if not has_timers(writer, path) then return end
    open_timers_of(writer, path)
    line(writer, format('disarm(timed, %d)', state))
    path.armed = false
end

local function write_clearing(writer, path)
    if not has_timers(writer, path) then return end
    open_timers_of(writer, path)
    line(writer, 'clear_timers(timed)')
    path.armed = false
end

local function write_arming(writer, path, transition, state)
    open_timers_of(writer, path)
    local active = writer.active
    writer.active = nil
    local delay = step_source.write(transition.delay_tree, writer)
    writer.active = active
    local event = lua_source.quote(transition.events[1])
    line(writer, format('arm_timer(timed, parse_duration(%s), %s, %d)', delay[1], event, state.index))
    path.armed = true
end

-- Microsteps

local function write_actions(writer, path, list)
    for _, action in ipairs(list or {}) do
        if action[1] == 'raise' then
            chart_state.raise(writer, path, action)
        elseif action[1] == 'enqueue' then
            if not action.spec.plain then give_up(writer) end
            path.effects[#path.effects + 1] = { kind = 'enqueue', spec = action.spec }
        else
            action_source.write(writer, action, path.changes)
        end
    end
end

local function leave_state(writer, path, index)
    local state = writer.program.states[index]
    write_actions(writer, path, state.exit and state.exit_actions)
    path.exited[index], path.entered[index], path.fresh[index] = true, nil, nil
    if state.timed then write_disarm(writer, path, index) end
end

local function enter_state(writer, path, plan, index)
    local state = writer.program.states[index]
    path.entered[index], path.fresh[index] = true, true
    if writer.active then writer.active[index] = true end
    write_actions(writer, path, state.entry and state.entry_actions)
    if plan.by_default[index] and state.initial.actions then write_actions(writer, path, state.initial.list) end
    if plan.after_entry[index] or state.final and state.donedata then give_up(writer) end
    for _, transition in ipairs(state.timed or {}) do write_arming(writer, path, transition, state) end
    if state.final then chart.finish_region(path, plan, state) end
end

local function write_microstep(writer, path, transitions)
    local program = writer.program
    path.microsteps = path.microsteps + 1
    step_source.check_size(writer, path.changes)
    if path.microsteps > MAX_MICROSTEPS then give_up(writer) end
    for _, transition in ipairs(transitions) do
        chart_state.note_memory(writer, transition)
        path.edges[#path.edges + 1] = transition
    end
    local plan = configurations.plan(program, path.config, transitions, path.memory)
    if #plan.leave + #plan.enter > MAX_STATES then give_up(writer) end
    for _, record in ipairs(plan.records) do
        path.memory[record[1]], path.records[record[1]] = record[2], record[2]
    end
    writer.active = program.tracks_active and copy(path.config.active) or nil
    for _, index in ipairs(plan.leave) do
        leave_state(writer, path, index)
        if writer.active then writer.active[index] = nil end
    end
    for _, transition in ipairs(transitions) do write_actions(writer, path, transition.list) end
    for _, index in ipairs(plan.enter) do enter_state(writer, path, plan, index) end
    path.config = plan.config
    path.moved = path.moved or plan.leave[1] ~= nil or plan.enter[1] ~= nil
end

-- The end of an instance: all states are left, and its configuration stays.
local function write_ending(writer, path)
    local program, all = writer.program, path.config.all
    if program.output or path.finished.donedata then give_up(writer) end
    writer.active = program.tracks_active and copy(path.config.active) or nil
    for i = #all, 1, -1 do
        local state = program.states[all[i]]
        write_actions(writer, path, state.exit and state.exit_actions)
        path.exited[all[i]] = true
        if writer.active then writer.active[all[i]] = nil end
    end
    write_clearing(writer, path)
    path.has_ended = true
end

-- Notes the jobs of states that were entered and are still active, in document order.
local function start_invokes(writer, path)
    local states = {}
    for index in pairs(path.entered) do states[#states + 1] = index end
    table.sort(states)
    for _, index in ipairs(states) do
        for _, invoke in ipairs(writer.program.states[index].invokes) do
            if invoke.machine or not invoke.plain then give_up(writer) end
            path.started[#path.started + 1] = { invoke = invoke }
        end
    end
end

local function write_end(writer, path)
    if not path.finished then start_invokes(writer, path) end
    path.state = path.config.leaves[1]
    writer.paths = writer.paths + 1
    if writer.paths > MAX_PATHS then give_up(writer) end
    step_writes.write_end(writer, path)
    writer.compiled = writer.compiled + 1
end

local write_rest

local function take(writer, path, transitions)
    write_microstep(writer, path, transitions)
    return write_rest(writer, path)
end

local function write_internal(writer, path)
    local event = table.remove(path.internal, 1)
    if not event then return write_end(writer, path) end
    writer.silent = true -- events inside a compiled step have no payload
    return write_selection(writer, path, event[1], function(chosen, transitions)
        if transitions then return take(writer, chosen, transitions) end
        return write_rest(writer, chosen)
    end)
end

-- Writes what follows a microstep: eventless transitions, then those of internal events, then the end of the step.
write_rest = function(writer, path)
    if path.finished then
        if path.chart then write_ending(writer, path) end
        return write_end(writer, path)
    end
    if not writer.program.eventless then return write_internal(writer, path) end
    return write_selection(writer, path, nil, function(chosen, transitions)
        if transitions then return take(writer, chosen, transitions) end
        return write_internal(writer, chosen)
    end)
end

-- Writes and loads the source of one step. Answers the function, or false, and whether it depends on `memory`: what the
-- histories of the instance have recorded.
local function build(program, shape, config, event, memory)
    local writer = step_source.open(program, shape, event)
    writer.paths, writer.compiled = 0, 0
    local begun = chart_state.open(program, config, memory)
    if find(event, TIMER_EVENT) then
        writer.silent, begun.timed = true, true -- the caller gives the timers, without the one that fires
        line(writer, 'if not timed then return nil end')
    else
        line(writer, 'if timed then return nil end')
    end
    attempt(writer, function()
        write_selection(writer, begun, event, function(path, transitions)
            if transitions then return take(writer, path, transitions) end
            line(writer, 'do if ending or timed then return nil end return refuse(f, payload, now) end')
        end)
    end)
    if writer.compiled == 0 then return false, writer.uses_memory end
    return step_writes.load(writer, refusals.make(program, shape, config, event), NAMES), writer.uses_memory
end

local function read_memory(program, shape, flat)
    local memory, parts = {}, {}
    for i, name in ipairs(program.histories) do
        local position = shape.positions[name]
        memory[name] = position and flat[position]
        parts[i] = memory[name] or ''
    end
    return memory, concat(parts, '\1')
end

-- Makes a step that is compiled for each text of the histories that it enters; `steps` has the first by its text.
local function make_remembering(program, shape, config, event, steps)
    local count = 1
    return function(flat, ...)
        local memory, text = read_memory(program, shape, flat)
        local step = steps[text]
        if step == nil then
            if count >= MAX_MEMORIES then return nil end
            local name = concat({ config.text, event, text }, '\t')
            step, count = step_source.compile(program, name, build, program, shape, config, event, memory), count + 1
            steps[text] = step
        end
        if not step then return nil end
        return step(flat, ...)
    end
end

-- Answers the configuration of an instance; nil where the interpreter has to look. An instance of a flat machine that has timers
-- came from a chart.
function step_compiler.find_configuration(program, shape, text)
    if program.flat and shape.positions._timers or not step_writes.is_plain(program, shape) then return nil end
    return configurations.parse(program, text)
end

-- Compiles the step of an event in a configuration for the fields of `shape`: {names, positions}; `flat` has the values of an
-- instance. Answers the function, or false.
function step_compiler.build(program, shape, config, event, flat)
    if program.flat and program.states[config.leaves[1]].final then return false end
    local memory, remembered = read_memory(program, shape, flat)
    local step, uses_memory = build(program, shape, config, event, memory)
    if uses_memory then return make_remembering(program, shape, config, event, { [remembered] = step }) end
    return step
end

return step_compiler
