-- needs: actions, data_indexes, expressions, fields, job_requests, json, keys, permits, reserved_events, values
-- needs: work_budget
-- Compiled definitions, kept between calls. An instance names its definition as `<version>:<digest>`, so an
-- entry can never be mistaken for another content, whatever was flushed, restored or published meanwhile.
local programs = {}

local FORMAT = 1
local MAX_CACHED = 1024
local MAX_EVENTS = 512
local TRANSITION = 40 -- units of work to compile one

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
        work_budget.charge(TRANSITION)
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
    end
    return list
end

local function compile_invokes(spec, compiled)
    for _, invoke in ipairs(spec.invoke or {}) do
        job_requests.compile(invoke, compiled)
        if invoke.machine then
            compiled.finalizers[invoke.id] = actions.compile(invoke.finalize, compiled)
            if type(invoke.machine) == 'table' then invoke.machine = expressions.compile(invoke.machine, compiled) end
            invoke.idlocation = invoke.idlocation and compiled.fields[invoke.idlocation]
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

-- The parts of a state that take work to compile, by what they are called in it. Which of them it lacks is false.
local PARTS = { 'listening', 'always', 'entry', 'exit', 'invokes', 'initial', 'default', 'donedata', 'timed' }
local IS_PART = {}
for _, name in ipairs(PARTS) do IS_PART[name] = true end

local function compile_parts(state, compiled)
    local spec, timed = state.spec, {}
    local transitions = compile_transitions(spec.transitions, compiled, state.index)
    for _, transition in ipairs(transitions) do
        if transition.delay then timed[#timed + 1] = transition end
    end
    return {
        listening = listener(transitions),
        always = compile_transitions(spec.always, compiled, state.index),
        entry = actions.compile(spec.entry, compiled),
        exit = actions.compile(spec.exit, compiled),
        invokes = compile_invokes(spec, compiled),
        initial = compile_entry(spec.initial, compiled),
        default = compile_entry(spec.default, compiled),
        donedata = spec.donedata and expressions.compile(spec.donedata, compiled),
        timed = timed[1] and timed,
    }
end

-- Compiles a state when the first step comes to it: a definition of many states holds the server for those alone that are
-- visited.
local function complete(state, compiled)
    local parts = compile_parts(state, compiled)
    if state.kind == 'history' and not parts.default then
        local parent = compiled.states[state.parent]
        parts.default = parent and parent.initial or { targets = { unpack(parent and parent.children or compiled.top) } }
    end
    setmetatable(state, nil)
    for _, name in ipairs(PARTS) do state[name] = parts[name] or false end
    state.spec = nil
end

local function lazily(compiled)
    return {
        __index = function(state, name)
            if not IS_PART[name] then return nil end
            complete(state, compiled)
            return state[name]
        end,
    }
end

local function outline_state(spec, index, root)
    return {
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
        spec = spec,
    }
end

-- Forms that need the whole interpreter, wherever they stand.
local CHART_FORMS = { trigger = true, send = true, cancel = true }

-- What expressions and actions of a state make necessary for the machine; `acting`: inside actions.
local function survey(node, compiled, acting)
    if type(node) ~= 'table' then return end
    local form = node[1]
    if CHART_FORMS[form] then compiled.flat = false end
    if form == 'in' and acting then compiled.precise, compiled.flat = true, false end
    for _, part in pairs(node) do survey(part, compiled, acting) end
end

local function survey_transitions(list, compiled)
    for _, spec in ipairs(list or {}) do
        if spec.targets or spec.delay then compiled.flat = false end
        if spec.allow then compiled.guarded = true end
        survey(spec.guard, compiled, false)
        survey(spec.actions, compiled, true)
    end
end

-- The actions `finalize` of machines that are invoked, by invoke: compiled with the state that invokes them.
local function finalizers(compiled)
    return setmetatable({}, {
        __index = function(found, id)
            local host = compiled.states[compiled.hosted[id]]
            return host and host.invokes and rawget(found, id)
        end,
    })
end

local function survey_invokes(list, compiled, state)
    for _, invoke in ipairs(list or {}) do
        if invoke.machine then
            compiled.flat, state.hosts = false, true
            compiled.finalizers = compiled.finalizers or finalizers(compiled)
            compiled.hosted[invoke.id] = state.index
            if type(invoke.machine) == 'string' then compiled.reaches[invoke.machine] = true end
        else
            compiled.invoked_by[invoke.id] = state.index
        end
        survey(invoke, compiled, false)
        survey(invoke.finalize, compiled, true)
    end
end

-- Learns what kind of machine it is without compiling anything.
local function survey_state(spec, compiled, state)
    if spec.kind or spec.parent or spec.donedata or spec.final and spec.exit then compiled.flat = false end
    survey_transitions(spec.transitions, compiled)
    survey_transitions(spec.always, compiled)
    survey_invokes(spec.invoke, compiled, state)
    for _, list in pairs({ spec.entry or false, spec.exit or false }) do survey(list, compiled, true) end
    for _, entry in pairs({ spec.initial or false, spec.default or false }) do survey(entry, compiled, true) end
    if spec.always and spec.always[1] then compiled.eventless = true end
    if spec.invoke and spec.invoke[1] then compiled.invokes_any = true end
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

local function set_of(names)
    local set = {}
    for _, name in ipairs(names or {}) do set[name] = true end
    return set
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
        hosted = {},
        reaches = set_of(source.brings), -- machines it invokes by name, or brings along
        accepts = source.accepts and set_of(source.accepts.from),
        configurations = { count = 0, of = {} },
        plans = 0,
        history = source.history or 100,
        events = source.events or {},
        open = source.open,
        approval = permits.compile(source.approval),
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
    -- Programs of earlier releases may list a reserved name; what is known may be fired.
    for _, name in ipairs(source.known or {}) do compiled.known[name] = not reserved_events.is(name) or nil end
    return compiled
end

-- Compiles one published program for one partition; throws what a broken program makes it throw.
function programs.compile(source, version, root, def, secret)
    if source.format ~= FORMAT then error({ sb = 'program format ' .. tostring(source.format) .. ' is not known here' }) end
    local compiled = outline(source, version, root)
    compiled.def = def
    compiled.secret = secret
    local lazy = lazily(compiled)
    for i, spec in ipairs(source.states) do
        compiled.states[i] = outline_state(spec, i, root)
        survey_state(spec, compiled, compiled.states[i])
        setmetatable(compiled.states[i], lazy)
    end
    compiled.initial = compile_entry(source.initial, compiled)
    if compiled.initial.actions or #compiled.initial.targets > 1 then compiled.flat = false end
    compiled.output = source.output and expressions.compile(source.output, compiled)
    if compiled.output then compiled.flat = false end
    arrange(compiled)
    return compiled
end

-- Compiles all states of a program that is about to be published, as far as one step's work goes; throws as compile does.
-- The rest is compiled when an instance comes to it.
function programs.check(source, root)
    local compiled = programs.compile(source, 0, root, '0:0', '')
    work_budget.start()
    local ok, caught = pcall(function()
        for _, state in ipairs(compiled.states) do state.listening('') end
    end)
    local exceeded = work_budget.exceeded()
    work_budget.stop()
    if not ok and not exceeded then error(caught, 0) end
end

local function remember(root, def, compiled)
    if cached >= MAX_CACHED then cache, cached = {}, 0 end
    cache[root] = cache[root] or {}
    cache[root][def], cached = compiled, cached + 1
    return compiled
end

-- The program an instance names; nil and a sentence where it is not there or not what the name says.
function programs.load(root, def)
    local versions = cache[root]
    local compiled = versions and versions[def]
    if compiled then return compiled end
    local version, digest = string.match(def, '^(%d+):(%x+)$')
    if not version then return nil, 'a definition is named <version>:<digest>, not ' .. def end
    local row = redis.call('HMGET', keys.definition(root, version), 'program', 'digest', 'secret')
    if not row[1] then return nil, 'version ' .. version .. ' is not published here' end
    local held = row[2] or 'none'
    if held ~= digest then return nil, 'version ' .. version .. ' has the digest ' .. held .. ', not ' .. digest end
    local fresh = programs.compile(cjson.decode(row[1]), version, root, def, row[3])
    data_indexes.attach(fresh)
    return remember(root, def, fresh)
end

-- Forgets the programs of a partition whose list of indexed fields has changed since they were compiled.
function programs.refresh(root)
    local versions = cache[root]
    if not versions then return end
    local listed = data_indexes.listed(root)
    for def, compiled in pairs(versions) do
        if compiled.listed ~= listed then versions[def], cached = nil, cached - 1 end
    end
end

-- `"event"` in JSON, quoted once per event name.
function programs.quoted_event(compiled, event)
    local quoted = compiled.quoted_events[event]
    if not quoted then
        quoted = json.quote(event)
        if compiled.known[event] then compiled.quoted_events[event] = quoted end
    end
    return quoted
end

return programs
