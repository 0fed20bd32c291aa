-- needs: actions, core, expressions, json, refusals, step_source, step_writes
-- Compiles the step of one event in one state of a flat machine to a Lua function, for instances whose hash has the same
-- fields in the same order: constants, fields, keys and transitions are in place, and nothing is looked up. The function
-- reads from the values of HGETALL, and writes what `step_plan` says. It answers nil, before it writes anything, for whatever
-- the interpreter has to do: a transition with other actions than `set` and `unset`, a guard or value that fails, a job whose
-- input is an expression. Where all guards are false it answers the refusal (`refusals`). A step may be the end of a job
-- (`ending`), and one of many in a call (`batch`).
local step_compiler = {}

local MAX_TRANSITIONS = 20
local LITERAL = { num = true, str = true, ['true'] = true, ['false'] = true }

local format, sub = string.format, string.sub
local line, add = step_source.line, step_writes.add

-- Actions

-- Answers the change of a field, a new one at the end of the list. A field that was changed before must have another value by
-- then: only so its place in the order of changes is known.
local function find_change(writer, changes, field)
    local change, position = changes.of[field.name], writer.positions[field.name]
    if not change then
        change = { field = field, before = position and 'f[' .. position .. ']' or 'nil', index = #changes + 1 }
        changes[#changes + 1], changes.of[field.name] = change, change
        step_source.check_size(writer, changes)
    elseif not change.certain then
        if not change.removed then
            line(writer, format('if %s == %s then return nil end', change.after, change.before))
        end
        change.certain = true
    end
    change.removed, change.literal = nil, nil
    return change
end

-- Writes a `set` or `unset`; notes it in `changes`, by field and in order.
local function write_action(writer, action, changes)
    local form, field, after, literal = action[1], writer.program.fields[action[2]], nil, nil
    if form ~= 'set' and form ~= 'unset' or not field then return step_source.give_up(writer) end
    if form == 'unset' then
        step_source.forget(writer, field)
        if not writer.positions[field.name] and not changes.of[field.name] then return end
    elseif LITERAL[action[3][1]] then
        local value = action[3][1] == 'true' or action[3][1] ~= 'false' and action[3][2]
        local ok, raw = pcall(field.encode, value)
        if not ok or #raw > writer.program.share then return step_source.give_up(writer) end
        after, literal = step_source.write_literal(writer, field, raw), raw
    else
        after = step_source.write_field(writer, field, action[3])
        if writer.explains then writer.work = writer.work + expressions.count_work(action[3], writer.program) end
    end
    local change = find_change(writer, changes, field)
    change.after, change.literal, change.removed = after or change.after, literal, form == 'unset'
end
step_compiler.write_action = write_action

local function write_actions(writer, list, changes)
    writer.work = writer.work + actions.count_work(list)
    for _, action in ipairs(list or {}) do write_action(writer, action, changes) end
end

-- Writes the answer of a step that is only explained: the number of the transition, what holds after it as JSON, and the
-- units of work of its actions.
local function write_outcome(writer, transition, changes, to)
    local data = {}
    for _, field in ipairs(writer.program.ordered) do
        local change, position = changes.of[field.name], writer.positions[field.name]
        local code = position and 'f[' .. position .. ']'
        if change then code = not change.removed and change.after end
        if code then add(data, field.quoted, { field.plain and code or 'quote(' .. code .. ')' }) end
    end
    if data[1] then data[1] = sub(data[1], 2) end
    local parts = { '{"configuration":[' .. json.quote(to.name) .. '],"data":{' }
    for _, part in ipairs(data) do parts[#parts + 1] = part end
    parts[#parts + 1] = '},"transitions":' .. json.quote(transition.id) .. '}'
    line(writer, format('local spent = count_spent() + %d', writer.work))
    line(writer, format('do return %d, %s, spent end', writer.number, step_writes.write_joined(parts)))
end

-- Tells whether the jobs of these invokes need no expression.
local function are_plain(invokes)
    for _, invoke in ipairs(invokes) do
        if not invoke.plain then return false end
    end
    return true
end

-- Writes the step of one transition, from its actions to its answer.
local function write_transition(writer, transition)
    local program, step = writer.program, step_writes.open(writer.program)
    local from = program.states[writer.state]
    local to = transition.target and program.states[transition.target] or from
    local moved = transition.target ~= nil and (transition.target ~= writer.state or transition.reenter or false)
    if to.always[1] or moved and not are_plain(to.invokes) or transition.delay then step_source.give_up(writer) end
    step.chart, step.moved, step.origin, step.state, step.edges = false, moved, from.index, to.index, { transition }
    step_source.check_size(writer, step.changes)
    writer.work = writer.selection
    if moved then write_actions(writer, from.exit_actions, step.changes) end
    write_actions(writer, transition.list, step.changes)
    if moved then
        write_actions(writer, to.entry_actions, step.changes)
        step.started = {}
        for i, invoke in ipairs(to.invokes) do step.started[i] = { invoke = invoke } end
    end
    if writer.explains then return write_outcome(writer, transition, step.changes, to) end
    step_writes.write_end(writer, step)
end

local function write_guard(writer, transition)
    return transition.tree and step_source.write_test(step_source.write(transition.tree, writer)) or 'true'
end

-- Writes the transitions in order. Behind a guard that is not compiled the interpreter decides. Answers how many are
-- compiled.
local function write_step(writer, transitions)
    local compiled = 0
    for i, transition in ipairs(transitions) do
        local known, test = step_source.attempt(writer, write_guard, writer, transition)
        if not known then break end
        line(writer, 'if ' .. test .. ' then')
        writer.number = i
        if writer.explains then
            writer.selection = writer.selection + expressions.count_work(transition.tree, writer.program)
        end
        local restore = step_source.remember(writer)
        if step_source.attempt(writer, write_transition, writer, transition) then compiled = compiled + 1 end
        line(writer, 'end')
        restore()
        if not transition.tree then return compiled end
        if i == #transitions then
            local explained = format('do return 0, nil, count_spent() + %d end', writer.selection)
            line(writer, writer.explains and explained or 'if not ending then return refuse(f, payload, now) end')
        end
    end
    return compiled
end

-- Answers where an instance stands; nil where the interpreter has to look. An instance that has timers came from a chart.
function step_compiler.find_place(program, shape, text)
    local index = program.index[text]
    return index and not shape.positions._timers and step_writes.is_plain(program, shape) and { state = index } or nil
end

-- Answers the units of work that selecting among the transitions of an event takes.
function step_compiler.count_selection(program, place, event)
    return core.count_selection(program.states[place.state].listening(event))
end

-- Compiles the step of an event at a place for the fields of `shape`: {names, positions}. `explains`: the function answers what
-- it would do, and writes nothing. Answers the function, or false.
function step_compiler.build(program, shape, place, event, _, explains)
    local state = program.states[place.state]
    local transitions = state.listening(event)
    if state.final or #transitions > MAX_TRANSITIONS then return false end
    local writer = step_source.open(program, shape, event)
    writer.state, writer.explains, writer.selection = place.state, explains, 0
    if write_step(writer, transitions) == 0 then return false end
    return step_writes.load(writer, not explains and refusals.make(program, shape, place, event))
end

return step_compiler
