-- needs: json, values, fields, expressions, actions, keys
-- Compiled definitions, kept between calls. An instance names its definition as `<version>:<digest>`, so an
-- entry can never be mistaken for another content, whatever was flushed, restored or published meanwhile.
local program = {}

local FORMAT = 1
local MAX_CACHED = 1024
local MAX_EVENTS = 512

local cache, cached = {}, 0

-- SCXML 3.12.1: a descriptor matches an event that is equal to it or begins with it and a dot.
local function matches(descriptor, event)
    if descriptor == '*' or descriptor == event then return true end
    local prefix = string.match(descriptor, '^(.-)%.?%*$') or descriptor
    return string.sub(event, 1, #prefix + 1) == prefix .. '.' or event == prefix
end

local function listens(transition, event)
    for _, descriptor in ipairs(transition.events) do
        if matches(descriptor, event) then return true end
    end
    return false
end

-- The transitions for an event, in document order, looked up once and remembered (to a bound).
local function listener(transitions)
    local known, count = {}, 0
    return function(event)
        local found = known[event]
        if found then return found end
        found = {}
        for _, transition in ipairs(transitions) do
            if listens(transition, event) then found[#found + 1] = transition end
        end
        if count < MAX_EVENTS then
            known[event], count = found, count + 1
        end
        return found
    end
end

local function compile_transitions(source, compiled)
    local list = {}
    for i, spec in ipairs(source or {}) do
        list[i] = {
            id = spec.id,
            events = spec.events or {},
            target = spec.target,
            reenter = spec.reenter,
            tree = spec.guard,
            text = spec.text,
            guard = spec.guard and expressions.compile(spec.guard, compiled),
            actions = actions.compile(spec.actions, compiled),
            flow = compiled.version .. ':' .. spec.id,
            quoted = ',' .. json.quote(spec.id) .. ',',
        }
    end
    return list
end

local function compile_state(spec, compiled, root)
    local transitions = compile_transitions(spec.transitions, compiled)
    local invokes = spec.invoke or {}
    for _, invoke in ipairs(invokes) do
        invoke.make_input = invoke.input and expressions.compile(invoke.input, compiled)
    end
    return {
        name = spec.name,
        quoted = ',' .. json.quote(spec.name),
        final = spec.final,
        index_key = keys.state(root, spec.name),
        entry = actions.compile(spec.entry, compiled),
        exit = actions.compile(spec.exit, compiled),
        listening = listener(transitions),
        always = compile_transitions(spec.always, compiled),
        invokes = invokes,
    }
end

-- Gives each declared payload field its test; answers the required ones by event.
local function declare(events)
    local required = {}
    for event, declared in pairs(events) do
        required[event] = {}
        for name, spec in pairs(declared) do
            spec.fits = fields.tester(spec.types)
            if spec.required then table.insert(required[event], name) end
        end
        table.sort(required[event])
    end
    return required
end

local function outline(source, version, root)
    local compiled = {
        flow_key = keys.flow(root),
        history_prefix = keys.history(root, ''),
        machine = source.machine,
        version = version,
        root = root,
        initial = source.initial,
        history = source.history or 100,
        events = source.events or {},
        open = source.open,
        states = {},
        index = {},
        fields = {},
        ordered = {},
        known = {},
        known_list = json.list(source.known),
        queues = source.queues or {},
        quoted_events = {},
    }
    for i, spec in ipairs(source.states) do compiled.index[spec.name] = i end
    compiled.required = declare(compiled.events)
    compiled.share = fields.share(#(source.data or {}))
    for i, spec in ipairs(source.data or {}) do
        local field = fields.compile(spec)
        compiled.fields[spec.name], compiled.ordered[i] = field, field
    end
    for _, name in ipairs(source.known or {}) do compiled.known[name] = true end
    return compiled
end

-- Compiles one published program for one partition; throws what a broken program makes it throw.
function program.compile(source, version, root, def, secret)
    if source.format ~= FORMAT then error({ sb = 'program format ' .. tostring(source.format) .. ' is not known here' }) end
    local compiled = outline(source, version, root)
    compiled.def = def
    compiled.secret = secret
    for i, spec in ipairs(source.states) do compiled.states[i] = compile_state(spec, compiled, root) end
    return compiled
end

local function remember(root, def, compiled)
    if cached >= MAX_CACHED then cache, cached = {}, 0 end
    cache[root] = cache[root] or {}
    cache[root][def], cached = compiled, cached + 1
    return compiled
end

-- The program an instance names; nil and a sentence where it is not there or not what the name says.
function program.load(root, def)
    local versions = cache[root]
    local compiled = versions and versions[def]
    if compiled then return compiled end
    local version, digest = string.match(def, '^(%d+):(%x+)$')
    if not version then return nil, 'a definition is named <version>:<digest>, not ' .. def end
    local row = redis.call('HMGET', keys.definition(root, version), 'program', 'digest', 'secret')
    if not row[1] then return nil, 'version ' .. version .. ' is not published here' end
    if row[2] ~= digest then return nil, 'version ' .. version .. ' has the digest ' .. row[2] .. ', not ' .. digest end
    return remember(root, def, program.compile(cjson.decode(row[1]), version, root, def, row[3]))
end

-- `"event"` in JSON, quoted once per event name.
function program.quoted_event(compiled, event)
    local quoted = compiled.quoted_events[event]
    if not quoted then
        quoted = json.quote(event)
        if compiled.known[event] then compiled.quoted_events[event] = quoted end
    end
    return quoted
end

return program
