-- needs: configurations, json, values
-- Recorded steps of a history, and how the outcome of a replayed step differs from a recorded one.
local recorded_steps = {}

local NONE = {}
local match, type = string.match, type

local function to_names(state)
    if type(state) == 'string' then return { state } end
    if not json.is_array(state) or not state[1] then return nil end
    for i = 1, #state do
        if type(state[i]) ~= 'string' then return nil end
    end
    return state
end

local function to_set(names)
    local set = {}
    for _, name in ipairs(type(names) == 'table' and names or NONE) do set[name] = true end
    return set
end

-- Reads an entry of a history, decoded: [revision, ms, event, state, transitions, actor, reason, payload, set, unset]; nil for
-- anything else. `lost`: the event had a payload that the history did not keep.
function recorded_steps.read(entry)
    if not json.is_array(entry) then return nil end
    local names = to_names(entry[4])
    if type(entry[1]) ~= 'number' or type(entry[2]) ~= 'number' or type(entry[3]) ~= 'string' or not names then return nil end
    if type(entry[5]) ~= 'string' then return nil end
    local payload = values.kind_of(entry[8]) == 'object' and entry[8] or NONE
    return {
        revision = entry[1],
        at = entry[2],
        event = entry[3],
        names = names,
        transitions = entry[5],
        actor = type(entry[6]) == 'string' and entry[6] or '',
        payload = payload,
        lost = payload ~= NONE and next(payload) == nil,
        empty = payload == NONE,
        set = values.kind_of(entry[9]) == 'object' and entry[9] or NONE,
        unset = to_set(entry[10]),
    }
end

-- Lists the names of the active leaves.
function recorded_steps.list_leaves(ctx)
    return ctx.config and { unpack(ctx.config.names) } or {}
end

-- Tells whether one of two states is the other, or lies in it.
local function are_related(program, a, b)
    return a == b or configurations.is_below(program, a, b) or configurations.is_below(program, b, a)
end

local function is_near(program, index, wanted)
    for other in pairs(wanted) do
        if are_related(program, index, other) then return true end
    end
    return false
end

-- Collects the states that stand for recorded leaves; nil when one of them is not active or none has a counterpart.
local function collect_wanted(ctx, rules, names, is_active)
    local wanted = {}
    for _, leaf in ipairs(names) do
        for _, name in ipairs(rules.states[leaf] or NONE) do
            local index = ctx.program.index[name]
            if not index or not is_active[index] then return nil end
            wanted[index] = true
        end
    end
    return next(wanted) and wanted
end

-- Tells whether the configuration of a context stands for the recorded leaves: all counterparts of these are active, and no
-- counterpart of another leaf is. A recorded leaf without a counterpart is left out unless it is the only one.
function recorded_steps.corresponds(ctx, rules, names)
    if rules.same then return table.concat(recorded_steps.list_leaves(ctx), '\n') == table.concat(names, '\n') end
    local all, is_active = ctx.config.all, {}
    for _, index in ipairs(all) do is_active[index] = true end
    local wanted = collect_wanted(ctx, rules, names, is_active)
    if not wanted then return false end
    for _, index in ipairs(all) do
        local claimed = rules.claimed[ctx.program.states[index].name]
        if claimed and not is_near(ctx.program, index, wanted) then return false end
    end
    return true
end

-- Tells whether both versions have the field, with one type.
function recorded_steps.is_shared(rules, name)
    return rules.same or rules.fields[name] == true
end

local function encode(field, value)
    local ok, raw = pcall(field.encode, values.to_nil(value))
    return ok and raw or nil
end

local function find_expected(field, step, before)
    local value = step.set[field.name]
    if value ~= nil then return encode(field, value) end
    if step.unset[field.name] then return nil end
    return before[field.name]
end

local function decode(field, raw)
    if raw == nil then return json.null end
    return values.to_null(field.decode(raw))
end

local function list_touched(ctx, step)
    local touched = {}
    for name in pairs(step.set) do touched[name] = true end
    for name in pairs(step.unset) do touched[name] = true end
    for _, field in ipairs(ctx.changed) do touched[field.name] = true end
    return touched
end

-- Lists the fields whose value after the step is not the recorded one: name -> value, recorded and replayed; nil, nil for
-- none. `before`: the hash before the step.
function recorded_steps.compare_data(ctx, rules, step, before)
    local expected, actual
    for name in pairs(list_touched(ctx, step)) do
        local field = ctx.program.fields[name]
        if field and recorded_steps.is_shared(rules, name) then
            local wanted = find_expected(field, step, before)
            if wanted ~= ctx.raw[name] then
                expected, actual = expected or {}, actual or {}
                expected[name], actual[name] = decode(field, wanted), decode(field, ctx.raw[name])
            end
        end
    end
    return expected, actual
end

local function map_transitions(text, rules)
    local listed = {}
    for id in string.gmatch(text, '%S+') do
        if not rules.transitions[id] then return nil end
        listed[#listed + 1] = rules.transitions[id]
    end
    return table.concat(listed, ' ')
end

-- Tells whether other transitions were taken than the recorded ones, as far as these have counterparts.
function recorded_steps.has_other_transitions(text, rules, step)
    if rules.same then return text ~= step.transitions end
    local wanted = map_transitions(step.transitions, rules)
    if not wanted then return false end
    local known = {}
    for id in string.gmatch(text, '%S+') do
        if rules.counterparts[id] then known[#known + 1] = id end
    end
    return table.concat(known, ' ') ~= wanted
end

-- Tells whether an event is the timer of a state.
function recorded_steps.is_timer(event)
    return match(event, '^after%.t%d+$') ~= nil
end

return recorded_steps
