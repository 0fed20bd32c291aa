-- needs: arguments, chart, configurations, draft_programs, fields, json, memory_instances, payloads, programs
-- needs: recorded_steps, replies, sends, timers, values, work_budget
-- Runs recorded histories on a version of their machine: the interpreter takes each recorded event again, on an instance
-- that exists in memory only. Nothing is written; jobs, messages and log entries are computed and dropped.
local replays = {}

local MAX_TRIED = 10 -- equal timers of which one may have made a step
local MAX_FIRED = 100 -- timers between two recorded steps
local MAX_TIMERS = 500 -- of which those that ended without a step are dropped
local PLATFORM, EXTERNAL = { type = 'platform' }, { type = 'external' }
local CANCELLED = 'the job was cancelled'
local NONE = {}
local match, type, pcall = string.match, type, pcall

-- Reasons why a step cannot be read from its history.
local PAYLOAD, RANDOM, CREATION, UNKNOWN, TIMERS = 'payload', 'random', 'creation', 'unknown step', 'timers'

-- Loads the program to replay on: `<version>:<digest>`, or the program of a draft as JSON; ends the call with
-- BADARG when there is none.
function replays.load(root, text)
    if string.sub(text, 1, 1) == '{' then return draft_programs.compile(root, text) end
    local program, missing = programs.load(root, text)
    return arguments.need(program, missing)
end

-- Reads how recorded versions correspond to the one that is replayed: version -> rules.
function replays.read_rules(text)
    local ok, found = pcall(cjson.decode, text)
    arguments.need(ok and type(found) == 'table', 'the rules are a JSON object')
    for version, rules in pairs(found) do
        local fits = type(version) == 'string' and type(rules) == 'table'
        arguments.need(fits, 'the rules are an object for each version')
        for _, part in ipairs({ 'states', 'events', 'transitions', 'fields', 'timers' }) do
            if rules[part] == nil then rules[part] = {} end
            arguments.need(type(rules[part]) == 'table', 'rules have tables, not ' .. part)
        end
        rules.claimed, rules.counterparts = {}, {}
        for _, names in pairs(rules.states) do
            arguments.need(type(names) == 'table', 'a state has a list of counterparts')
            for _, name in ipairs(names) do rules.claimed[name] = true end
        end
        for _, id in pairs(rules.transitions) do rules.counterparts[id] = true end
    end
    return found
end

-- Starts or continues the replay of one instance. `found`: what `replays.save` made, or {version, parent} at first.
function replays.open(program, rules, id, found)
    arguments.need(type(found) == 'table' and type(found.version) == 'string', 'a snapshot has a version')
    arguments.need(rules[found.version], 'there are no rules for version ' .. found.version)
    arguments.need(found.raw == nil or type(found.raw) == 'table', 'a snapshot has a hash')
    return {
        program = program,
        all_rules = rules,
        rules = rules[found.version],
        id = id,
        version = found.version,
        parent = type(found.parent) == 'string' and found.parent or nil,
        raw = found.raw,
        names = type(found.names) == 'table' and json.list(found.names) or json.list(),
        lenient = found.lenient == true, -- the timers in memory may not be all there are
        untimed = found.untimed == true, -- the due times of the timers in memory may be wrong
    }
end

-- Makes the snapshot from which `replays.open` continues.
function replays.save(run)
    return { version = run.version, parent = run.parent, raw = run.raw, names = run.names, lenient = run.lenient,
        untimed = run.untimed }
end

local function open_context(run, revision, at)
    return memory_instances.open(run.program, run.id, run.raw, revision, at)
end

local function settle(run, ctx, revision)
    run.raw = memory_instances.settle(ctx, revision)
end

-- Events

-- Answers the event of the replayed version for a recorded one; nil for a timer without a counterpart.
local function translate(run, event)
    local found = run.rules.events[event]
    if found ~= nil then return found ~= '' and found or nil end
    if not run.rules.same and recorded_steps.is_timer(event) then return nil end
    return event
end

-- Lists the timers that a recorded step of a timer may have been, the one that was due first in front. Equal ones before the
-- true one ended without a step.
local function list_timers(ctx, event, step)
    local of_state, found = recorded_steps.is_timer(event), {}
    local payload = payloads.encode_for_history(step.payload)
    for _, timer in ipairs(timers.read_list(ctx)) do
        local fits = timer[3] == event and (timer[4] ~= 0) == of_state
        if fits and not of_state and not step.lost then
            local sent = json.decode(timer[6])
            fits = values.kind_of(sent) ~= 'object' or payloads.encode_for_history(sent) == payload
        end
        if fits then found[#found + 1] = timer end
    end
    table.sort(found, function(a, b) return a[2] < b[2] end)
    return found
end

-- Drops delayed events whose moment passed without a step, so that they do not fill the list.
local function drop_ended_timers(ctx)
    local list = timers.read_list(ctx)
    if #list <= MAX_TIMERS then return end
    local kept = {}
    for _, timer in ipairs(list) do
        if timer[4] ~= 0 or timer[2] >= ctx.now then kept[#kept + 1] = timer end
    end
    ctx.timers, ctx.timers_changed = kept, true
end

-- Takes the step of a timer, the `way.timer`th one that fits. Answers true for a third result when there was no such timer
-- to take.
local function try_timer(run, ctx, event, step, way)
    if not ctx.chart then return nil, nil, true end
    drop_ended_timers(ctx)
    local found = list_timers(ctx, event, step)
    way.has_more = way.timer < math.min(#found, MAX_TRIED)
    if found[way.timer] then return memory_instances.take_timer(ctx, found[way.timer]) end
    if not recorded_steps.is_timer(event) then return nil, nil, true end
    if not run.lenient then return false end
    return chart.step(ctx, event, nil, PLATFORM)
end

-- Lists what the recorded step may have known about its event beside name and payload: the likely facts first. The history
-- has the sender alone.
local function list_facts(run, event, step)
    local machine, id = match(step.actor, '^([^/]+)/(.+)$')
    if not machine or run.program.flat and not run.parent then return { EXTERNAL } end
    if machine == run.program.machine and id == run.id then return { EXTERNAL } end
    local end_of, invoke = match(event, '^(%l+)%.invoke%.(.+)$')
    local origin, children = '#_scxml_' .. step.actor, run.raw._children and cjson.decode(run.raw._children) or {}
    local message = { type = 'external', origin = origin, origintype = sends.PROCESSOR }
    if end_of == 'done' then
        message.invokeid, message.ended = invoke, invoke
        return { message }
    end
    if end_of == 'error' then return { { type = 'platform', invokeid = invoke, ended = invoke } } end
    for name, child in pairs(children) do
        if child.machine == machine and child.id == id then invoke = name end
    end
    if event == 'error.communication' then
        return { { type = 'platform', invokeid = invoke, ended = invoke }, PLATFORM }
    end
    local of_child = invoke and { type = 'external', origin = origin, origintype = sends.PROCESSOR, invokeid = invoke }
    return of_child and { of_child, message, EXTERNAL } or { message, EXTERNAL }
end

-- Makes the payload of a recorded step. For one that the history calls empty it notes whether a field is read: a history of
-- an earlier release calls one empty that was too long to keep.
local function make_payload(ctx, step)
    if not step.empty then return step.payload end
    return setmetatable({}, { __index = function() ctx.has_read_nothing = true end })
end

local function take_event(run, ctx, step, way)
    local event = translate(run, step.event)
    if not event then return false end
    if step.actor == 'timer' then
        local taken, why, is_missing = try_timer(run, ctx, event, step, way)
        if not is_missing then return taken, why end
    end
    return chart.step(ctx, event, make_payload(ctx, step), way.facts)
end

-- Compares an outcome with the record: {kinds = list, ...}, nil when they agree.
local function compare(run, outcome, step)
    local ctx, rules, kinds = outcome.ctx, run.rules, json.list()
    local expected = { configuration = json.list({ unpack(step.names) }), transitions = step.transitions }
    local text = outcome.taken and replies.join_transitions(ctx) or ''
    local actual = { transitions = text, error = outcome.failure }
    actual.configuration = json.list(outcome.taken and recorded_steps.list_leaves(ctx) or { unpack(outcome.leaves) })
    if outcome.taken == nil then
        kinds[1] = 'failed'
    elseif not outcome.taken then
        kinds[1] = 'refused'
    else
        if not recorded_steps.corresponds(ctx, rules, step.names) then kinds[1] = 'configuration' end
        if recorded_steps.has_other_transitions(text, rules, step) then kinds[#kinds + 1] = 'transitions' end
        expected.data, actual.data = recorded_steps.compare_data(ctx, rules, step, outcome.before)
        if expected.data then kinds[#kinds + 1] = 'data' end
    end
    if not kinds[1] then return nil end
    return { kinds = kinds, expected = expected, actual = actual, step = step.revision, at = step.at, event = step.event,
        version = run.version, source = run.names }
end

-- `way`: {facts, timer}, what is assumed that the history does not tell.
local function attempt(run, step, way)
    local ctx = open_context(run, step.revision, step.at)
    if not ctx then return { taken = false, before = run.raw, leaves = NONE, ctx = NONE } end
    local outcome = { ctx = ctx, before = run.raw, leaves = recorded_steps.list_leaves(ctx) }
    outcome.taken, outcome.failure = take_event(run, ctx, step, way)
    work_budget.stop()
    outcome.difference = compare(run, outcome, step)
    return outcome
end

-- Writes the recorded data into the context, as far as the replayed version has the fields.
local function write_recorded(run, ctx, step)
    for name, value in pairs(step.set) do
        local field = ctx.program.fields[name]
        if field and recorded_steps.is_shared(run.rules, name) then pcall(fields.write, ctx, field, values.to_nil(value)) end
    end
    for name in pairs(step.unset) do
        local field = ctx.program.fields[name]
        if field and recorded_steps.is_shared(run.rules, name) then fields.clear(ctx, field) end
    end
end

-- Answers why a difference says nothing, because the history does not tell enough; nil when it does.
local function find_untold(run, outcome, step)
    if step.lost then return PAYLOAD end
    if step.empty and run.rules.same and outcome.ctx.has_read_nothing then return PAYLOAD end
    if outcome.ctx.draws then return RANDOM end
    return nil
end

-- Finds the states that stand for the recorded leaves; nil when they cannot be active together.
local function find_targets(run, step)
    local program, targets = run.program, {}
    for _, leaf in ipairs(step.names) do
        for _, name in ipairs(run.rules.same and { leaf } or run.rules.states[leaf] or NONE) do
            local index = program.index[name]
            if index and program.states[index].kind ~= 'history' then targets[#targets + 1] = index end
        end
    end
    if not targets[1] then return nil end
    targets = configurations.keep_innermost(program, targets)
    if targets[2] and (program.flat or not configurations.can_be_together(program, targets)) then return nil end
    return targets
end

local function place(run, ctx, step)
    local targets = find_targets(run, step)
    local ok, why = false, nil
    if targets then ok, why = pcall(chart.enter_states, ctx, targets) end
    if ok then return nil end
    local leaves = json.list(recorded_steps.list_leaves(ctx))
    return { divergence = { kinds = json.list({ 'configuration' }), step = step.revision, at = step.at, event = step.event,
        version = run.version, source = run.names,
        expected = { configuration = json.list({ unpack(step.names) }), transitions = step.transitions },
        actual = { configuration = leaves, transitions = '', error = why and values.describe_error(why) } } }
end

-- Goes on from the record after a step that cannot be read. Tells whether the replay can go on: what history states recorded
-- in such a step is not known.
local function resume_from_record(run, outcome, step)
    local ctx = outcome.ctx
    if outcome.taken ~= true or not recorded_steps.corresponds(ctx, run.rules, step.names) then
        ctx = run.raw and not run.program.histories[1] and open_context(run, step.revision, step.at)
        if not ctx then return false end
        run.lenient, run.untimed = true, true
        write_recorded(run, ctx, step)
        if place(run, ctx, step) then return false end
    end
    write_recorded(run, ctx, step)
    settle(run, ctx, step.revision)
    run.names = json.list(step.names)
    return true
end

local function finish(run, outcome, step)
    if not outcome.difference then
        settle(run, outcome.ctx, step.revision)
        run.names = json.list(step.names)
        return nil
    end
    local reason = find_untold(run, outcome, step)
    if not reason then return { divergence = outcome.difference } end
    return { untold = reason, stops = not resume_from_record(run, outcome, step) }
end

-- Takes the step of an event in the way that repeats the record, if one does.
local function take_step(run, step)
    local first
    for _, facts in ipairs(list_facts(run, translate(run, step.event) or '', step)) do
        local way = { facts = facts, timer = 0, has_more = true }
        while way.has_more do
            way.timer, way.has_more = way.timer + 1, false
            local outcome = attempt(run, step, way)
            if not outcome.difference then return finish(run, outcome, step) end
            first = first or outcome
        end
    end
    return finish(run, first, step)
end

-- Creation

-- Creates the instance in memory with this data; answers the outcome.
local function try_create(run, program, step, given)
    local ctx, taken, failure = memory_instances.create(program, run.id, given, step.at, run.parent, true)
    work_budget.stop()
    return { ctx = ctx, before = NONE, leaves = NONE, taken = taken or nil, failure = failure }
end

-- Lists the recorded values that a new instance of the program does not have by itself.
local function list_given(program, step)
    local given = {}
    for name, value in pairs(step.set) do
        local field = program.fields[name]
        if field then
            local ok, raw = pcall(field.encode, values.to_nil(value))
            if ok and raw ~= field.initial then given[name] = value end
        end
    end
    return given
end

-- Tells whether an instance that is given this data begins as recorded. Answers also the fields that differ.
local function begins_alike(run, program, step, given)
    local outcome = try_create(run, program, step, given)
    if not outcome.taken then return false, NONE end
    local rules = { same = true }
    local expected = recorded_steps.compare_data(outcome.ctx, rules, step, NONE)
    local is_alike = not expected and recorded_steps.corresponds(outcome.ctx, rules, step.names)
        and replies.join_transitions(outcome.ctx) == step.transitions
    return is_alike, expected or NONE, outcome.ctx
end

local function without(given, names)
    local left = {}
    for name, value in pairs(given) do
        if not names[name] then left[name] = value end
    end
    return left
end

-- Finds the data that the instance was given: the history has the data after the first actions. Of the recorded values those
-- were given that actions did not set. Answers it, and whether the version that took the step repeats it with that.
local function find_given(run, program, step)
    local none, all = {}, list_given(program, step)
    local is_alike, _, ctx = begins_alike(run, program, step, none)
    if is_alike then return none, true end
    local set = {}
    for _, field in ipairs(ctx and ctx.changed or NONE) do set[field.name] = ctx.raw[field.name] ~= field.initial or nil end
    local given = without(all, set)
    if begins_alike(run, program, step, given) then return given, true end
    local differing
    is_alike, differing = begins_alike(run, program, step, all)
    if is_alike then return all, true end
    given = without(all, differing)
    return given, (begins_alike(run, program, step, given))
end

local function create(run, step)
    local recorded = run.program
    if not run.rules.same and type(run.rules.def) == 'string' and run.rules.def ~= '' then
        recorded = programs.load(run.program.root, run.rules.def) or recorded
    end
    local given, is_known = find_given(run, recorded, step)
    local outcome = try_create(run, run.program, step, given)
    outcome.difference = compare(run, outcome, step)
    if outcome.difference and not is_known then
        return { untold = outcome.ctx.draws and RANDOM or CREATION, stops = not resume_from_record(run, outcome, step) }
    end
    return finish(run, outcome, step)
end

-- Repairs: applied as they are recorded

local repairs = {}

repairs['(edit)'] = function() return nil end
repairs['(retry)'] = repairs['(edit)']
repairs['(suspend)'] = function(_, ctx, step) ctx.raw._suspended = json.number(step.at) end
repairs['(resume)'] = function(run, ctx)
    ctx.raw._suspended, run.untimed = nil, true
end
repairs['(force)'] = place

repairs['(reset)'] = function(run, ctx, step)
    if ctx.chart then
        timers.clear(ctx)
        for _, name in ipairs(ctx.program.histories) do ctx.raw[name] = nil end
    end
    return place(run, ctx, step)
end

repairs['(migrate)'] = function(run, ctx, step)
    run.lenient = true
    if recorded_steps.corresponds(ctx, run.rules, step.names) then return nil end
    return place(run, ctx, step)
end

-- Goes on in the version to which the instance was moved.
local function change_version(run, step)
    local to = step.event == '(migrate)' and tonumber(step.payload.to)
    local version = to and json.number(to)
    if not version then return step.event ~= '(migrate)' end
    if not run.all_rules[version] then return false end
    run.version, run.rules = version, run.all_rules[version]
    return true
end

local function apply_repair(run, step)
    if not change_version(run, step) then return { untold = UNKNOWN, stops = true } end
    local ctx = open_context(run, step.revision, step.at)
    if not ctx then return { untold = UNKNOWN, stops = true } end
    write_recorded(run, ctx, step)
    local problem = repairs[step.event](run, ctx, step)
    work_budget.stop()
    if problem then return problem end
    write_recorded(run, ctx, step)
    settle(run, ctx, step.revision)
    run.names = json.list(step.names)
    return nil
end

-- Makes the event of a repaired wait for a job; nil when the history does not tell the job.
local function read_job_repair(step)
    local invoke = step.payload.invoke
    if type(invoke) ~= 'string' then return nil end
    local event = { lost = step.event == '(cancel)', event = 'error.invoke.' .. invoke,
        payload = { error = CANCELLED, kind = 'Withdrawn' } }
    if step.event == '(skip)' then
        event.event, event.payload, event.empty = 'done.invoke.' .. invoke, { result = step.payload.result }, nil
    end
    return setmetatable(event, { __index = function(_, name) return name ~= 'empty' and step[name] or nil end })
end

local function take_job_repair(run, step)
    local event = read_job_repair(step)
    if not event then return { untold = PAYLOAD, stops = true } end
    if step.event == '(cancel)' and step.transitions == '' then
        run.names = json.list(step.names) -- no transition listened, or its actions failed
        return nil
    end
    local found = take_step(run, event)
    if found and found.divergence then found.divergence.event = step.event end
    return found
end

-- Timers that the recorded version does not have

local function find_new_timer(run, ctx, before)
    local found
    for _, timer in ipairs(timers.read_list(ctx)) do
        local is_new = timer[4] ~= 0 and run.rules.timers[timer[3]]
        if is_new and timer[2] < before and (not found or timer[2] < found[2]) then found = timer end
    end
    return found
end

-- Fires the next timer of the replayed version that was due before the recorded step and that the recorded version does not
-- have. Answers whether there was one, and what it changed that the record does not have.
local function fire_new_timer(run, step)
    if run.rules.same or run.untimed or not run.raw._timers or run.raw._suspended or next(run.rules.timers) == nil then
        return false
    end
    local ctx = open_context(run, step.revision, step.at)
    local timer = ctx and ctx.chart and find_new_timer(run, ctx, step.at)
    if not timer then return false end
    ctx.now = math.max(timer[2], tonumber(run.raw._entered) or 0)
    local outcome = { ctx = ctx, before = run.raw, leaves = recorded_steps.list_leaves(ctx) }
    local taken, failure = memory_instances.take_timer(ctx, timer)
    work_budget.stop()
    if taken and not recorded_steps.corresponds(ctx, run.rules, run.names) then
        local record = { names = run.names, transitions = '', set = NONE, unset = NONE, revision = step.revision,
            at = ctx.now, event = timer[3] }
        outcome.taken, outcome.failure = taken, failure
        local difference = compare(run, outcome, record)
        difference.kinds = json.list({ 'timer' })
        return true, { divergence = difference }
    end
    if taken then
        settle(run, ctx, step.revision - 1)
    else
        ctx = open_context(run, step.revision, step.at)
        timers.take(ctx, timer[1])
        ctx.timers_changed = true
        settle(run, ctx, step.revision - 1)
    end
    return true
end

-- Replays the next recorded step. Answers nil when it repeats the record, or a table with `divergence`, or with `untold`, a
-- reason, and whether the replay `stops` there.
function replays.step(run, step)
    if step.event == '(create)' then return create(run, step) end
    if not run.raw then return { untold = 'trimmed', stops = true } end
    local fired, problem, count = true, nil, 0
    while fired and not problem do
        if count == MAX_FIRED then return { untold = TIMERS, stops = true } end
        fired, problem = fire_new_timer(run, step)
        count = count + 1
    end
    if problem then return problem end
    if repairs[step.event] then return apply_repair(run, step) end
    if step.event == '(skip)' or step.event == '(cancel)' then return take_job_repair(run, step) end
    if match(step.event, '^%(.*%)$') and not run.program.known[step.event] then return { untold = UNKNOWN, stops = true } end
    return take_step(run, step)
end

return replays
