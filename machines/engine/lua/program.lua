-- needs: json, values, fields, expressions, actions, keys, lookups, work
-- Compiled definitions, kept between calls. An instance names its definition as `<version>:<digest>`, so an
-- entry can never be mistaken for another content, whatever was flushed, restored or published meanwhile.
local program = {}

local FORMAT = 1
local MAX_CACHED = 1024
local MAX_EVENTS = 512

local cache, cached = {}, 0

-- SCXML 3.12.1: a descriptor matches an event that is equal to it or begins with it and a dot. A timer is no event that
-- anyone sends: it is heard where it was set, and by no pattern.
local function matches(descriptor, event)
    if descriptor == event then return true end
    if string.find(event, '^after%.t%d+$') then return false end
    if descriptor == '*' then return true end
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

local function compile_transitions(source, compiled, index)
    local list = {}
    for i, spec in ipairs(source or {}) do
        list[i] = {
            id = spec.id,
            events = spec.events or {},
            source = index,
            target = spec.target,
            targets = spec.targets or { spec.target },
            reenter = spec.reenter,
            tree = spec.guard,
            text = spec.text,
            guard = spec.guard and expressions.compile(spec.guard, compiled),
            actions = actions.compile(spec.actions, compiled),
            delay = spec.delay and expressions.compile(spec.delay, compiled),
            flow = compiled.version .. ':' .. spec.id,
            quoted = ',' .. json.quote(spec.id) .. ',',
            allow = spec.allow and json.list(spec.allow),
        }
        if spec.targets or spec.delay then compiled.flat = false end
    end
    return list
end

local function compile_invokes(spec, compiled, state)
    for _, invoke in ipairs(spec.invoke or {}) do
        work.compile(invoke, compiled)
        if invoke.machine then
            compiled.flat, state.hosts, compiled.finalizers = false, true, compiled.finalizers or {}
            compiled.finalizers[invoke.id] = actions.compile(invoke.finalize, compiled)
            if type(invoke.machine) == 'table' then invoke.machine = expressions.compile(invoke.machine, compiled) end
            invoke.idlocation = invoke.idlocation and compiled.fields[invoke.idlocation]
        else
            compiled.invoked_by[invoke.id] = state.index
        end
    end
    return spec.invoke or {}
end

-- Where a chart goes by default: {targets, actions}; a single state may stand for itself.
local function compile_entry(spec, compiled)
    if not spec then return nil end
    if type(spec) == 'number' then return { targets = { spec } } end
    return { targets = spec.targets or { spec.target }, actions = actions.compile(spec.actions, compiled) }
end

local function compile_state(spec, index, compiled, root)
    local state = {
        index = index,
        name = spec.name,
        quoted = ',' .. json.quote(spec.name),
        final = spec.final,
        index_key = keys.state(root, spec.name),
        kind = spec.kind,
        parent = spec.parent or 0,
        root = spec.root,
        leaf = not spec.kind,
        last = index,
        children = {},
        histories = {},
        deep = spec.deep,
        done = spec.done,
        sla = spec.sla,
    }
    if spec.kind or spec.parent or spec.donedata or spec.final and spec.exit then compiled.flat = false end
    local transitions = compile_transitions(spec.transitions, compiled, index)
    state.entry = actions.compile(spec.entry, compiled)
    state.exit = actions.compile(spec.exit, compiled)
    state.listening = listener(transitions)
    state.always = compile_transitions(spec.always, compiled, index)
    state.invokes = compile_invokes(spec, compiled, state)
    state.initial = compile_entry(spec.initial, compiled)
    state.default = compile_entry(spec.default, compiled)
    state.donedata = spec.donedata and expressions.compile(spec.donedata, compiled)
    for _, transition in ipairs(transitions) do
        if transition.delay then
            state.timed = state.timed or {}
            table.insert(state.timed, transition)
        end
    end
    if state.always[1] then compiled.eventless = true end
    if state.invokes[1] then compiled.invokes_any = true end
    return state
end

-- What is below what. The states stand in document order, so that a parent comes before its children.
local function arrange(compiled)
    for index, state in ipairs(compiled.states) do
        local parent = compiled.states[state.parent]
        if state.kind == 'history' then
            table.insert(compiled.histories, '_h:' .. state.name)
            if parent then table.insert(parent.histories, index) end
        else
            table.insert(parent and parent.children or compiled.top, index)
        end
        while parent do
            parent.last = index
            parent = compiled.states[parent.parent]
        end
    end
    for _, state in ipairs(compiled.states) do
        if state.kind == 'history' and not state.default then
            local parent = compiled.states[state.parent]
            state.default = parent and parent.initial or { targets = { unpack(parent and parent.children or compiled.top) } }
        end
    end
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
        flat = not source.errors,
        raises = source.errors == 'raise',
        top = {},
        histories = {},
        invoked_by = {},
        configurations = { count = 0, of = {} },
        plans = 0,
        history = source.history or 100,
        events = source.events or {},
        open = source.open,
        states = {},
        index = {},
        fields = {},
        ordered = {},
        columns = { '_def' },
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
        compiled.fields[spec.name], compiled.ordered[i], compiled.columns[i + 1] = field, field, spec.name
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
    for i, spec in ipairs(source.states) do compiled.states[i] = compile_state(spec, i, compiled, root) end
    compiled.initial = compile_entry(source.initial, compiled)
    if compiled.initial.actions or #compiled.initial.targets > 1 then compiled.flat = false end
    compiled.output = source.output and expressions.compile(source.output, compiled)
    if compiled.output then compiled.flat = false end
    arrange(compiled)
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
    local fresh = program.compile(cjson.decode(row[1]), version, root, def, row[3])
    lookups.attach(fresh)
    return remember(root, def, fresh)
end

-- Forgets the programs of a partition whose list of indexed fields has changed since they were compiled.
function program.refresh(root)
    local versions = cache[root]
    if not versions then return end
    local listed = lookups.listed(root)
    for def, compiled in pairs(versions) do
        if compiled.listed ~= listed then versions[def], cached = nil, cached - 1 end
    end
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
