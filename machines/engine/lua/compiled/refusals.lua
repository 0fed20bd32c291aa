-- needs: guard_explanation, json, lua_source, replies, step_source, strings, work_budget
-- The answers of compiled steps that take no transition. For each candidate the text of its reasons becomes Lua source, at the
-- first refusal; it says what `guard_explanation` says of the same values. What is not known here is left to the interpreter.
local refusals = {}

local MAX_WORK = 6000 -- units: far below what the interpreter may spend for the same explanation
local ARRAY_MARK = 2 -- where the reasons begin behind their first comma

local format, sub, concat = string.format, string.sub, table.concat
local line, quote = step_source.line, lua_source.quote

local HEADER = 'return function(f, payload, now)\nlocal found = ""\n'
local NAMES = { { 'encode', json.encode } }

local FIELDS = {
    integer = 'number(tonumber(%s))',
    number = 'number(tonumber(%s))',
    string = 'quote(%s)',
    boolean = '(%s == "true" and "true" or "null")', -- as the interpreter shows it
}

-- Writes the JSON of a value that a leaf reads.
local function write_value(writer, kind, name)
    if kind == 'now' then return 'number((now - now % 1000) / 1000)' end
    if kind == 'event' then return format('encode(payload[%s], %d)', quote(name), guard_explanation.VALUE_DEPTH) end
    local position = writer.positions[name]
    if not position then return '"null"' end
    local code = FIELDS[writer.program.fields[name].type]
    if not code then step_source.give_up(writer) end
    return format(code, 'f[' .. position .. ']')
end

-- Writes a part that decided, as JSON. `known`: its result, where that is known.
local function write_leaf(writer, text, node, known)
    writer.leaves = writer.leaves + 1
    if writer.leaves > guard_explanation.MAX_LEAVES then step_source.give_up(writer) end
    local found, listed = {}, {}
    guard_explanation.visit_reads(node, function(kind, name)
        local shown = kind == 'event' and 'event.' .. name or name or 'now'
        if not found[shown] then listed[#listed + 1] = shown end
        found[shown] = write_value(writer, kind, name)
    end)
    strings.sort(listed)
    local parts = { quote(',{"text":' .. json.quote(text) .. ',"values":{') }
    for i, shown in ipairs(listed) do
        parts[#parts + 1] = quote((i > 1 and ',' or '') .. json.quote(shown) .. ':')
        parts[#parts + 1] = found[shown]
    end
    parts[#parts + 1] = '"},\\"verdict\\":\\""'
    if known then
        parts[#parts + 1] = quote(known)
    else
        local test = step_source.write_test(step_source.write(node, writer))
        parts[#parts + 1] = format('((%s) and "true" or "false")', test)
    end
    parts[#parts + 1] = '"\\"}"'
    line(writer, 'found = found .. ' .. concat(parts, ' .. '))
end

-- Writes what happens in a branch: behind it the writer knows what it knew before.
local function within(writer, write)
    local restore = step_source.remember(writer)
    write()
    restore()
end

local write_tree

-- An `and` is decided by its first part that is false.
local function write_first_false(writer, node, at)
    if not node[at] then return end
    local test = step_source.write_test(step_source.write(node[at], writer))
    line(writer, 'if not (' .. test .. ') then')
    within(writer, function() write_tree(writer, node[at], 'false') end)
    line(writer, 'else')
    within(writer, function() write_first_false(writer, node, at + 1) end)
    line(writer, 'end')
end

-- Writes the parts that decided a guard, in the order of `guard_explanation`.
write_tree = function(writer, node, verdict)
    local form = node[1]
    if form == 'because' then
        write_leaf(writer, node[2], node[3], verdict)
    elseif form == 'and' then
        write_first_false(writer, node, 2)
    elseif form == 'or' then
        for i = 2, #node do write_tree(writer, node[i], verdict) end
    elseif form == 'not' then
        write_tree(writer, node[2])
    end
end

-- Writes and loads the function that answers the reasons of one false guard; nil where the interpreter has to say them.
local function compile_reasons(program, shape, config, transition)
    local writer = step_source.open(program, shape)
    writer.active, writer.leaves = config.active, 0
    local ok, why = pcall(write_tree, writer, transition.tree, 'false')
    if ok then
        line(writer, 'if found == "" then')
        ok, why = pcall(write_leaf, writer, transition.text or 'guard', transition.tree, 'false')
        line(writer, 'end')
    end
    if not ok then
        if not writer.gave_up then error(why, 0) end
        return nil
    end
    return lua_source.load(HEADER .. concat(writer.lines, '\n') .. '\nreturn found\nend', step_source.names, NAMES)
end

-- Makes the candidates of an event, whose guards are all false: each as JSON up to its reasons, and the function that answers
-- these; false where one is left to the interpreter.
local function compile_candidates(program, shape, config, event)
    local found = {}
    for i, transition in ipairs(guard_explanation.list_transitions(program, config, event)) do
        local reasons = compile_reasons(program, shape, config, transition)
        if not reasons then return false end
        found[i] = { begin = guard_explanation.begin_candidate(program, event, transition, 'guard') .. '[', reasons = reasons }
    end
    return found
end

local function join_candidates(candidates, f, payload, now)
    local listed = {}
    for i, candidate in ipairs(candidates) do
        listed[i] = candidate.begin .. sub(candidate.reasons(f, payload, now), ARRAY_MARK) .. ']}'
    end
    return concat(listed, ',')
end

-- Makes the function that answers the refusal of an event whose guards are all false; nil where the interpreter has to.
function refusals.make(program, shape, config, event)
    local candidates, head, verdict
    local revision = shape.positions._version
    local function prepare()
        local name = concat({ 'refuse', config.text, event }, '\t')
        candidates = step_source.compile(program, name, compile_candidates, program, shape, config, event)
        head = replies.begin_explanation(event, config)
        verdict = replies.judge(false, 'guards', nil, 0)
    end
    return function(f, payload, now)
        if candidates == nil then prepare() end
        if not candidates then return nil end
        work_budget.start_explanation()
        local listed = join_candidates(candidates, f, payload, now)
        if work_budget.count_spent() > MAX_WORK then return nil end
        return { replies.REFUSED, head .. json.number(tonumber(f[revision])) .. verdict .. listed
            .. replies.end_explanation(program, 0, 'null') }
    end
end

local function is_final(program, config)
    return program.flat and program.states[config.leaves[1]].final
end

-- Tells whether an event finds no transition, or a final state. Of the engine's own events it does not.
function refusals.is_without_candidates(program, config, event)
    if event == step_source.UNKNOWN then return true end
    if not program.known[event] then return false end
    return is_final(program, config) or not guard_explanation.list_transitions(program, config, event)[1]
end

-- Makes the step of such an event: it takes what a step takes. That of `UNKNOWN` is for all events that the definition does not
-- know, and takes the event in place of the id.
function refusals.make_step(program, shape, config, event)
    local revision, is_unknown = shape.positions._version, event == step_source.UNKNOWN
    local has_ended = is_final(program, config)
    local absent -- the latest name that has no transition here, for callers that repeat it
    return function(f, name, _, _, _, _, _, _, _, _, _, ending, _, timed)
        if ending or timed then return nil end
        if not is_unknown then name = event end
        if is_unknown and name ~= absent and not has_ended then
            if guard_explanation.list_transitions(program, config, name)[1] then return nil end
            absent = name
        end
        local why = has_ended and 'final' or replies.explain_absence(program, name)
        return { replies.REFUSED, replies.begin_explanation(name, config) .. json.number(tonumber(f[revision]))
            .. replies.judge(false, why, nil, 0) .. replies.end_explanation(program, 0, 'null') }
    end
end

return refusals
