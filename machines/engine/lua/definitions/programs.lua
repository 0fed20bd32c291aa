-- needs: actions, data_indexes, expressions, fields, job_requests, json, keys, permits, reserved_events, values
-- needs: work_budget
-- Compiled definitions, cached between calls. An instance names its definition as `<version>:<digest>`, so a cached program
-- always has the right content, even after a flush, a restore or another publication.
local programs = {}

local FORMAT = 1
local MAX_CACHED = 1024
local MAX_EVENTS = 512
local TRANSITION = 40 -- units of work to compile one

local cache, cached = {}, 0
local MAX_SUMMARIES = 4096
local summaries, summary_count = {}, 0

-- SCXML 3.12.1: a descriptor matches an event that equals it or begins with it and a dot. An `after` event matches only its
-- own name: wildcards do not match timers.
local function matches_descriptor(descriptor, event)
    if descriptor == event then return true end
    if string.find(event, '^after%.t%d+$') then return false end
    if descriptor == '*' then return true end
    local prefix = string.match(descriptor, '^(.-)%.?%*$') or descriptor
    return string.sub(event, 1, #prefix + 1) == prefix .. '.' or event == prefix
end

local function matches_event(transition, event)
    for _, descriptor in ipairs(transition.events) do
        if matches_descriptor(descriptor, event) then return true end
    end
    return false
end

-- Makes the lookup of transitions by event, in document order. Results are cached up to a bound.
local function make_lookup(transitions)
    local lists, count = {}, 0
    return function(event)
        local list = lists[event]
        if list then return list end
        list = {}
        for _, transition in ipairs(transitions) do
            if matches_event(transition, event) then list[#list + 1] = transition end
        end
        if count < MAX_EVENTS then
            lists[event], count = list, count + 1
        end
        return list
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
            list = spec.actions, -- what compiled steps are made of, like the next
            delay_tree = spec.delay,
            delay = spec.delay and expressions.compile(spec.delay, compiled),
            is_fixed = spec.delay and spec.delay[1] == 'num', -- its delay does not depend on the data
            flow = compiled.version .. ':' .. spec.id,
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

-- Compiles a default entry to {targets, actions}; a single target may be a plain number.
local function compile_entry(spec, compiled)
    if not spec then return nil end
    if type(spec) == 'number' then return { targets = { spec } } end
    return { targets = spec.targets or { spec.target }, actions = actions.compile(spec.actions, compiled), list = spec.actions }
end

-- The parts of a state that cost work to compile. A part that a state lacks is false.
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
        listening = make_lookup(transitions),
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

-- Compiles a state when the first step enters it, so that a definition of many states costs the server only the visited
-- ones.
local function compile_state(state, compiled)
    local parts = compile_parts(state, compiled)
    if state.kind == 'history' and not parts.default then
        local parent = compiled.states[state.parent]
        parts.default = parent and parent.initial or { targets = { unpack(parent and parent.children or compiled.top) } }
    end
    setmetatable(state, nil)
    state.entry_actions, state.exit_actions = state.spec.entry, state.spec.exit
    for _, name in ipairs(PARTS) do state[name] = parts[name] or false end
    state.spec = nil
end

local function make_lazy(compiled)
    return {
        __index = function(state, name)
            if not IS_PART[name] then return nil end
            compile_state(state, compiled)
            return state[name]
        end,
    }
end

local function outline_state(spec, index, root)
    return {
        index = index,
        name = spec.name,
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

-- Forms that need the statechart interpreter (`chart`) wherever they occur.
local CHART_FORMS = { trigger = true, send = true, cancel = true }

-- Tells whether the text of a program may hold a form that `survey_node` looks for: searching it takes a tenth of the time.
local function needs_survey(text)
    for _, construct in ipairs({ '"trigger"', '"send"', '"cancel"', '"in"', '\\u' }) do
        if string.find(text, construct, 1, true) then return true end
    end
    return false
end

-- Notes what the expressions and actions of a state require; `in_action`: inside an action.
local survey_node
survey_node = function(node, compiled, in_action)
    if type(node) ~= 'table' or compiled.is_surveyed then return end
    local form = node[1]
    if CHART_FORMS[form] then compiled.flat = false end
    if form == 'cmp' then -- its operators are no forms: `in` may be one
        survey_node(node[2], compiled, in_action)
        for i = 3, #node do survey_node(node[i][2], compiled, in_action) end
        return
    end
    if form == 'in' and in_action then compiled.tracks_active, compiled.flat = true, false end
    for _, part in pairs(node) do survey_node(part, compiled, in_action) end
end

local function survey_transitions(list, compiled)
    for _, spec in ipairs(list or {}) do
        if spec.targets or spec.delay then compiled.flat = false end
        if spec.allow then compiled.has_allow = true end
        survey_node(spec.guard, compiled, false)
        survey_node(spec.actions, compiled, true)
    end
end

-- Makes the lookup of `finalize` actions by invoke. Reading one compiles the state that has the invoke.
local function make_finalizers(compiled)
    return setmetatable({}, {
        __index = function(list, id)
            local host = compiled.states[compiled.machine_invokes[id]]
            return host and host.invokes and rawget(list, id)
        end,
    })
end

local function survey_invokes(list, compiled, state)
    for _, invoke in ipairs(list or {}) do
        if invoke.machine then
            compiled.flat, state.invokes_machines = false, true
            compiled.finalizers = compiled.finalizers or make_finalizers(compiled)
            compiled.machine_invokes[invoke.id] = state.index
            if type(invoke.machine) == 'string' then compiled.invoked_machines[invoke.machine] = true end
        else
            compiled.invoked_by[invoke.id] = state.index
        end
        survey_node(invoke, compiled, false)
        survey_node(invoke.finalize, compiled, true)
    end
end

-- Notes the features of a state without compiling it.
local function survey_state(spec, compiled, state)
    if spec.kind or spec.parent or spec.donedata or spec.final and spec.exit then compiled.flat = false end
    survey_transitions(spec.transitions, compiled)
    survey_transitions(spec.always, compiled)
    survey_invokes(spec.invoke, compiled, state)
    for _, list in pairs({ spec.entry or false, spec.exit or false }) do survey_node(list, compiled, true) end
    for _, entry in pairs({ spec.initial or false, spec.default or false }) do survey_node(entry, compiled, true) end
    if spec.always and spec.always[1] then compiled.eventless = true end
    if spec.invoke and spec.invoke[1] then compiled.invokes_any = true end
end

-- Links parents and children. States are in document order, so a parent comes before its children.
local function link_states(compiled)
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

-- Compiles the types of payload fields; answers the names of the required ones by event.
local function compile_events(events)
    local required = {}
    for event, declared in pairs(events) do
        required[event] = {}
        for name, spec in pairs(declared) do
            spec.fits = fields.make_test(spec.types)
            if spec.required then table.insert(required[event], name) end
        end
        table.sort(required[event])
    end
    return required
end

local function to_set(names)
    local set = {}
    for _, name in ipairs(names or {}) do set[name] = true end
    return set
end

local function outline_program(source, version, root)
    local compiled = {
        flow_key = keys.flow(root),
        history_prefix = keys.history(root, ''),
        instance_prefix = keys.instance(root, ''),
        machine = source.machine,
        version = version,
        root = root,
        flat = not source.errors,
        raises = source.errors == 'raise',
        top = {},
        histories = {},
        invoked_by = {},
        machine_invokes = {},
        invoked_machines = to_set(source.brings), -- machines that it invokes by name, or whose definitions it contains
        encrypted = source.sensitive and source.sensitive.encrypted,
        accepts = source.accepts and to_set(source.accepts.from),
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
    }
    for i, spec in ipairs(source.states) do compiled.index[spec.name] = i end
    compiled.required = compile_events(compiled.events)
    compiled.share = fields.compute_share(#(source.data or {}))
    for i, spec in ipairs(source.data or {}) do
        local field = fields.compile(spec)
        compiled.fields[spec.name], compiled.ordered[i], compiled.columns[i + 1] = field, field, spec.name
        field.set_mark, field.unset_mark = '\t' .. i .. '=', '\t-' .. i -- prefixes in a history entry
    end
    -- Programs of earlier releases may list a reserved event, which must not become known: known events can be fired.
    for _, name in ipairs(source.known or {}) do compiled.known[name] = not reserved_events.is_reserved(name) or nil end
    return compiled
end

-- Compiles one published program for one partition; throws the error of a broken program. `text`: the program as JSON, if it
-- is known.
function programs.compile(source, version, root, def, secret, text)
    if source.format ~= FORMAT then error({ sb = 'program format ' .. tostring(source.format) .. ' is not known here' }) end
    local compiled = outline_program(source, version, root)
    compiled.is_surveyed = text and not needs_survey(text)
    compiled.def = def
    compiled.secret = secret
    local lazy = make_lazy(compiled)
    for i, spec in ipairs(source.states) do
        compiled.states[i] = outline_state(spec, i, root)
        survey_state(spec, compiled, compiled.states[i])
        setmetatable(compiled.states[i], lazy)
    end
    compiled.initial = compile_entry(source.initial, compiled)
    if compiled.initial.actions or #compiled.initial.targets > 1 then compiled.flat = false end
    compiled.output = source.output and expressions.compile(source.output, compiled)
    if compiled.output then compiled.flat = false end
    link_states(compiled)
    return compiled
end

-- Compiles all states of a program before it is published, within the work of one step; throws like compile. Further states
-- are compiled when an instance enters them.
function programs.check_work(source, root)
    local compiled = programs.compile(source, 0, root, '0:0', '')
    work_budget.start()
    local ok, caught = pcall(function()
        for _, state in ipairs(compiled.states) do state.listening('') end
    end)
    local exceeded = work_budget.is_exceeded()
    work_budget.stop()
    if not ok and not exceeded then error(caught, 0) end
end

local function cache_program(root, def, compiled)
    if cached >= MAX_CACHED then cache, cached = {}, 0 end
    cache[root] = cache[root] or {}
    cache[root][def], cached = compiled, cached + 1
    return compiled
end

-- Answers the program that an instance names if it is cached.
function programs.find(root, def)
    local versions = cache[root]
    return versions and def and versions[def]
end

-- Answers the program that an instance names; nil and a sentence when it is missing or has another digest.
function programs.load(root, def)
    local versions = cache[root]
    local compiled = versions and versions[def]
    if compiled then return compiled end
    local version, digest = string.match(def, '^(%d+):(%x+)$')
    if not version then return nil, 'a definition is named <version>:<digest>, not ' .. def end
    local row = redis.call('HMGET', keys.definition(root, version), 'program', 'digest', 'secret')
    if not row[1] then return nil, 'version ' .. version .. ' is not published here' end
    local stored = row[2] or 'none'
    if stored ~= digest then return nil, 'version ' .. version .. ' has the digest ' .. stored .. ', not ' .. digest end
    local fresh = programs.compile(cjson.decode(row[1]), version, root, def, row[3], row[1])
    data_indexes.attach(fresh)
    return cache_program(root, def, fresh)
end

local NO_SUMMARY = { leaves = {}, levels = {} }

-- Answers what figures need of a version: leaves (state -> whether it is a leaf) and levels (state -> its service level in ms).
-- It is the same in all partitions, and far smaller than a program.
function programs.summarize(root, def)
    local summary = summaries[def]
    if summary then return summary end
    local version, digest = string.match(def, '^(%d+):(%x+)$')
    local row = version and redis.call('HMGET', keys.definition(root, version), 'program', 'digest') or {}
    if not row[1] or row[2] ~= digest then return NO_SUMMARY end
    summary = { leaves = {}, levels = {} }
    for _, spec in ipairs(cjson.decode(row[1]).states) do
        summary.leaves[spec.name] = not spec.kind or nil
        summary.levels[spec.name] = spec.sla
    end
    if summary_count >= MAX_SUMMARIES then summaries, summary_count = {}, 0 end
    summaries[def], summary_count = summary, summary_count + 1
    return summary
end

-- Drops cached programs of a partition whose list of indexed fields has changed since they were compiled.
function programs.drop_outdated(root)
    local versions = cache[root]
    if not versions then return end
    local listed = data_indexes.read_list(root)
    for def, compiled in pairs(versions) do
        if compiled.listed ~= listed then versions[def], cached = nil, cached - 1 end
    end
end

return programs
