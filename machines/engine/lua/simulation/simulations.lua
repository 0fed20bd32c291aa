-- needs: arguments, chart, configurations, json, memory_instances, payloads, permits, previews, repairs, replies
-- needs: reserved_events, sends, timers, values, work_budget
-- Simulates one instance: it takes a list of inputs in memory, and each leads to a record of what happened. Jobs, messages
-- and log entries are recorded and go nowhere.
local simulations = {}

local EXTERNAL = { type = 'external' }
local RETRY_MS = 60000 -- a timer whose step failed is tried again after this, as sb_tick does
local MAX_NEXT = 500 -- events of which a record tells whether they would be taken
local DEPTH = -64
local NONE = {}
local type, insert = type, table.insert

-- Snapshots

local function open_context(run)
    return memory_instances.open(run.program, run.id, run.raw, tonumber(run.raw._version) + 1, run.now)
end

-- Begins a simulation, or continues one from its snapshot. `found`: {id, now, snapshot}.
function simulations.open(program, found)
    local kept = type(found.snapshot) == 'table' and found.snapshot or NONE
    return {
        program = program,
        id = found.id,
        now = tonumber(kept.now or found.now),
        raw = kept.raw,
        jobs = json.list(kept.jobs or {}), -- those that the instance waits for: {number, invoke, src, queue, input}
        number = kept.number or 0, -- jobs so far
        late = kept.late or {}, -- timer -> ms at which it is tried again
        is_brief = found.brief == true, -- without explanations
        till = kept.till, -- ms up to which the clock is being wound
    }
end

simulations.open_context = open_context

function simulations.save(run)
    return { raw = run.raw, now = run.now, jobs = run.jobs, number = run.number, late = run.late, till = run.till }
end

-- Records

local function list_leaves(ctx)
    return json.list({ unpack(ctx.config and ctx.config.names or NONE) })
end

local function decode_list(text)
    return text and cjson.decode(text) or {}
end

local function list_timers(ctx, text)
    return previews.list_differing_timers(ctx, decode_list(text), NONE)
end

-- Tells whether an expression reads the payload of its event.
local function reads_event(tree)
    if type(tree) ~= 'table' then return false end
    if tree[1] == 'event' or tree[1] == 'trigger' then return true end
    for _, part in pairs(tree) do
        if reads_event(part) then return true end
    end
    return false
end

-- Judges an event without a payload: 'taken', 'guard', or 'payload' where a guard asks for the payload; nil where no
-- transition listens.
local function judge_event(ctx, event)
    local verdict
    for _, list in ipairs(configurations.list_candidates(ctx.program, ctx.config, event)) do
        for _, transition in ipairs(list) do
            local ok, value = true, true
            if transition.guard then ok, value = pcall(transition.guard, ctx) end
            if not ok then work_budget.rethrow_exceeded(value) end
            if transition.guard and reads_event(transition.tree) then
                verdict = 'payload'
            elseif ok and values.is_true(value) then
                return 'taken'
            end
            verdict = verdict or 'guard'
        end
    end
    return verdict
end

-- Lists the events for which a transition listens, and whether they would be taken.
local function list_next(run)
    local found, ctx = json.list(), open_context(run)
    if chart.is_finished(ctx) then
        work_budget.stop()
        return found
    end
    for i, event in ipairs(ctx.program.known_list) do
        local ok, verdict = pcall(judge_event, ctx, event)
        if not ok or i > MAX_NEXT then break end
        if verdict then found[#found + 1] = { event = event, verdict = verdict } end
    end
    work_budget.stop()
    return found
end

local function list_log(ctx)
    local found = json.list()
    for _, effect in ipairs(ctx.effects) do
        if effect.kind ~= 'enqueue' then
            found[#found + 1] = { kind = effect.kind, name = effect.name, data = json.decode(effect.text) }
        end
    end
    return found
end

local function list_messages(ctx)
    local found = json.list()
    for _, message in ipairs(ctx.messages) do
        local body = message.body
        found[#found + 1] = { kind = message.kind, machine = message.machine, id = message.id, event = body.event,
            invoke = body.invoke, data = body.data and json.decode(body.data) or json.null }
    end
    return found
end

-- Lists the fields that a step wrote, as the history does.
local function list_changes(ctx)
    local found = {}
    for _, field in ipairs(ctx.changed) do
        local raw = ctx.raw[field.name]
        found[field.name] = raw == nil and json.null or values.to_null(field.decode(raw))
    end
    return found
end

-- Changes the jobs that the instance waits for, as a commit does; answers those that were withdrawn and those requested.
local function change_jobs(run, ctx)
    local kept, gone, added = json.list(), json.list(), previews.list_added(ctx)
    for _, job in ipairs(run.jobs) do
        local state = ctx.program.invoked_by[job.invoke]
        local is_left = ctx.has_ended or not state or ctx.exited[state]
        insert(is_left and gone or kept, job)
    end
    for _, job in ipairs(added) do
        run.number = run.number + 1
        job.number = run.number
        if job.invoke ~= '' then insert(kept, job) end
    end
    run.jobs = kept
    return gone, added
end

local function add_not_allowed(record, ctx)
    local transition = ctx.not_allowed
    if transition then record.not_allowed = { transition = transition.id, groups = json.list(transition.allow) } end
end

-- Notes in a record what a step changed, from the hash before it.
local function note_step(run, record, ctx, before)
    record.changes = list_changes(ctx)
    record.log, record.messages = list_log(ctx), list_messages(ctx)
    record.withdrawn, record.requested = change_jobs(run, ctx)
    local old, new = decode_list(before._timers), decode_list(ctx.raw._timers)
    record.disarmed = previews.list_differing_timers(ctx, old, new)
    record.armed = previews.list_differing_timers(ctx, new, old)
    old, new = decode_list(before._children), decode_list(ctx.raw._children)
    record.ended = previews.list_differing_children(old, new)
    record.started = previews.list_differing_children(new, old)
end

-- Encodes a record with what the instance is now.
local function encode(run, record, explanation)
    local raw = run.raw
    local ctx = raw and open_context(run)
    record.at, record.input = run.now, run.input
    if ctx then
        record.configuration, record.version = list_leaves(ctx), ctx.revision
        record.timers, record.jobs = list_timers(ctx, raw._timers), run.jobs
        record.children = previews.list_differing_children(decode_list(raw._children), NONE)
        record.done = chart.is_finished(ctx)
        record.next = list_next(run)
    end
    local data = ctx and replies.encode_data(ctx) or '{}'
    work_budget.stop()
    return '{"explanation":' .. (explanation or 'null') .. ',"data":' .. data .. ',' .. string.sub(json.encode(record, DEPTH), 2)
end

-- Steps

local function explain(run, before, ctx, event, payload, taken, failure)
    if run.is_brief then return nil end
    ctx.work = ctx.work or work_budget.count_spent()
    local again = memory_instances.open(run.program, run.id, before, tonumber(before._version) + 1, run.now)
    return replies.explain_step(ctx, again, event, payload, taken, failure)
end

-- Lists the transitions whose guard fails for an event: id -> why. nil for none.
local function list_failing(run, event, payload)
    local ctx, found = open_context(run), nil
    ctx.payload, ctx.event = payload, { event, payload, EXTERNAL }
    for _, list in ipairs(configurations.list_candidates(ctx.program, ctx.config, event)) do
        for _, transition in ipairs(list) do
            local ok, why = true, nil
            if transition.guard then ok, why = pcall(transition.guard, ctx) end
            if not ok then
                found = found or {}
                found[transition.id] = values.describe_error(why)
            end
        end
    end
    work_budget.stop()
    return found
end

-- Takes the step that `perform` takes on the context. Answers its outcome, the record, and the explanation as JSON.
local function take(run, event, payload, perform)
    local before, ctx, record = run.raw, open_context(run), { event = event, payload = payload }
    if not ctx then return nil end
    if run.is_brief then record.failing = list_failing(run, event, payload) end
    local taken, failure = perform(ctx)
    record.transitions = json.list()
    record.outcome = taken and 'taken' or failure and 'failed' or ctx.not_allowed and 'not allowed' or 'refused'
    record.error = failure
    add_not_allowed(record, ctx)
    local explanation = explain(run, before, ctx, event, payload, taken, failure)
    if taken then
        for i, transition in ipairs(ctx.edges) do record.transitions[i] = transition.id end
        run.raw = memory_instances.settle(ctx, ctx.revision + 1)
        note_step(run, record, ctx, before)
    end
    return record.outcome, record, explanation, ctx
end

-- Inputs: each handler calls `emit` with a record for each step, and answers an error where the input makes no sense.

local handlers = {}

-- Reads a payload as a call does: nil and why where it is none.
local function read_payload(given)
    if given == nil or given == json.null then return payloads.parse('') end
    if values.kind_of(given) ~= 'object' then return nil, 'a payload is an object, not ' .. values.kind_of(given) end
    return payloads.parse(json.encode(given))
end

function handlers.event(run, input, emit)
    local event = input.event
    local bad = type(event) ~= 'string' and 'an event has a name' or arguments.check_event(event)
    if bad then return bad end
    if not run.program.known[event] and reserved_events.is_reserved(event) then return reserved_events.describe(event) end
    local payload, why = read_payload(input.payload)
    if payload then why = payloads.find_misfit(run.program, event, payload) else payload = {} end
    if why then return emit({ event = event, payload = input.payload, outcome = 'bad payload', error = why }) end
    local permit = input.groups and json.encode({ groups = input.groups }) or nil
    local _, record, explanation = take(run, event, payload, function(ctx)
        bad = permit and permits.read(ctx, permit, '')
        if bad then return false end
        return chart.step(ctx, event, payload)
    end)
    if bad then return bad end
    return emit(record, explanation)
end

-- Changes data, as the repair does.
function handlers.edit(run, input, emit)
    local _, record, explanation = take(run, '(edit)', input.edit, function(ctx)
        local why = repairs.patch_data(ctx, json.encode(input.edit, DEPTH))
        return not why, why
    end)
    return emit(record, explanation)
end

-- Finds an awaited job by its invoke, or by its handler.
local function find_job(run, name)
    for _, part in ipairs({ 'invoke', 'src' }) do
        for i, job in ipairs(run.jobs) do
            if job[part] == name then return job, i end
        end
    end
end

-- The end of a job. Without a transition, or with guards that are false, only the wait ends; a step that fails leaves a
-- finished job where it is.
function handlers.job(run, input, emit)
    local job, at = find_job(run, input.job)
    if not job then return 'the instance waits for no job of ' .. values.describe(input.job) end
    local has_failed = input.failed ~= nil
    local event, payload = 'done.invoke.' .. job.invoke, {}
    if has_failed then
        event = 'error.invoke.' .. job.invoke
        payload = { error = input.failed, kind = input.kind or 'Exception', attempts = input.attempts or 1 }
    elseif values.to_nil(input.done) ~= nil then
        payload = { result = input.done }
    end
    table.remove(run.jobs, at)
    local has_listener = true
    local outcome, record, explanation = take(run, event, payload, function(ctx)
        ctx.ending = tostring(job.number)
        has_listener = chart.has_transition(ctx, event)
        if not has_listener then return false end
        return chart.step(ctx, event, payload, EXTERNAL)
    end)
    if not has_listener then record.outcome = 'ignored' end
    if outcome == 'failed' and not has_failed then insert(run.jobs, at, job) end
    return emit(record, explanation)
end

local function make_facts(from, invoke)
    return { type = 'external', invokeid = invoke, origin = '#_scxml_' .. from.machine .. '/' .. from.id,
        origintype = sends.PROCESSOR }
end

-- The end of a child without done data. Its wait ends even where the step fails.
local function fail_child(run, invoke, message, emit)
    local event, payload = 'error.invoke.' .. invoke, { message = message }
    local outcome, record, explanation = take(run, event, payload, function(ctx)
        return chart.step(ctx, event, payload, { type = 'platform', invokeid = invoke, ended = invoke })
    end)
    if outcome == 'failed' then
        local children = decode_list(run.raw._children)
        children[invoke] = nil
        run.raw._children = next(children) and cjson.encode(children) or nil
    end
    return emit(record, explanation)
end

-- The end of a child, or an event that it sends to its parent.
function handlers.child(run, input, emit)
    local invoke = input.child
    local child = decode_list(run.raw._children)[invoke]
    if not child then return 'no child runs for ' .. values.describe(invoke) end
    if input.failed ~= nil then return fail_child(run, invoke, input.failed, emit) end
    local facts, event, payload = make_facts(child, invoke), input.event, input.payload
    if type(event) ~= 'string' then
        event, payload, facts.ended = 'done.invoke.' .. invoke, input.done, invoke
    elseif reserved_events.is_reserved(event) then
        return reserved_events.describe(event)
    end
    payload = values.to_nil(payload)
    if payload == nil then payload = {} end
    local outcome, record, explanation = take(run, event, payload, function(ctx)
        return chart.step(ctx, event, payload, facts)
    end)
    local why = emit(record, explanation)
    if not why and outcome == 'failed' and facts.ended then return fail_child(run, invoke, record.error, emit) end
    return why
end

-- An event from another instance. Whether its machine is accepted is known where the definition names the senders.
function handlers.message(run, input, emit)
    local event, from = input.message, input.from
    local is_named = type(from) == 'table' and type(from.machine) == 'string' and type(from.id) == 'string'
    if not is_named then return 'a message is from an instance: {"machine", "id"}' end
    local bad = type(event) ~= 'string' and 'an event has a name' or arguments.check_event(event)
    bad = bad or reserved_events.is_reserved(event) and reserved_events.describe(event) or nil
    if bad then return bad end
    local payload, why = read_payload(input.payload)
    if payload then why = payloads.find_misfit(run.program, event, payload) end
    local accepts = run.program.accepts
    if accepts and from.machine ~= run.program.machine and not accepts['*'] and not accepts[from.machine] then
        why = 'the machine accepts nothing from ' .. values.describe(from.machine)
    end
    if why then return emit({ event = event, payload = input.payload, outcome = 'bad payload', error = why }) end
    local _, record, explanation = take(run, event, payload, function(ctx)
        return chart.step(ctx, event, payload, make_facts(from))
    end)
    return emit(record, explanation)
end

-- Finds the timer that is due next, and when it fires.
local function find_timer(run)
    local found, due
    for _, timer in ipairs(run.raw._done and NONE or decode_list(run.raw._timers)) do
        local at = math.max(run.late[timer[1]] or timer[2], run.now)
        local is_first = not due or at < due
        if at == due then is_first = timers.make_member(timer[1], '') < timers.make_member(found[1], '') end
        if is_first then found, due = timer, at end
    end
    return found, due
end

local function fire_timer(run, timer, emit)
    local payload = timer[4] == 0 and json.decode(timer[6]) or {}
    local ended
    local outcome, record, explanation = take(run, timer[3], values.to_nil(payload) or {}, function(ctx)
        local taken, why = memory_instances.take_timer(ctx, timer)
        if taken == false then ended = ctx end
        return taken, why
    end)
    record.timer = timer[1]
    run.late[timer[1]] = outcome == 'failed' and run.now + RETRY_MS or nil
    if ended then -- only the timer is over: no step
        local before, revision = run.raw, ended.revision
        record.outcome, run.raw = 'ignored', memory_instances.settle(ended, revision)
        record.messages, record.disarmed = list_messages(ended), previews.list_differing_timers(ended,
            decode_list(before._timers), decode_list(run.raw._timers))
    end
    return emit(record, explanation)
end

-- Winds the clock: each timer that becomes due takes its step at its moment. 'next' is the moment of the next timer.
function handlers.advance(run, input, emit, is_over)
    local timer, due = find_timer(run)
    if not run.till then
        local ms = input.advance == 'next' and (due and due - run.now or 0) or input.advance
        if type(ms) ~= 'number' or ms % 1 ~= 0 or ms < 0 or not arguments.read_now(string.format('%.0f', run.now + ms)) then
            return 'the clock advances by a whole number of ms, or to "next"'
        end
        if not timer or due > run.now + ms then
            run.now = run.now + ms
            return emit({ outcome = 'waited' })
        end
        run.till = run.now + ms
    end
    while timer and due <= run.till do
        run.now = due
        local why = fire_timer(run, timer, emit)
        if why then return why end
        if is_over() then return nil, true end
        timer, due = find_timer(run)
    end
    run.now, run.till = run.till, nil
    return nil
end

local KINDS = { 'job', 'child', 'message', 'advance', 'edit', 'event' }

local function find_handler(input)
    for _, kind in ipairs(KINDS) do
        if input[kind] ~= nil then return handlers[kind] end
    end
end

-- Takes one input. Answers why it makes no sense, or nil; then whether it has to be given again, to go on with it.
-- `emit`: gets the JSON of each record.
function simulations.take_input(run, input, emit, is_over)
    local handler = type(input) == 'table' and find_handler(input)
    if not handler then return 'an input has one of event, advance, edit, job, child, message' end
    return handler(run, input, function(record, explanation)
        if not record then return 'the instance is in a configuration that the definition does not have' end
        emit(run.is_brief and record or encode(run, record, explanation))
    end, is_over)
end

-- Creates the instance with this data; answers why the data does not fit and the field, or nil.
function simulations.create(run, data, parent, emit)
    local ctx, taken, failure, field = memory_instances.create(run.program, run.id, data, run.now, parent, parent ~= nil)
    if taken == false then return failure, field or '' end
    local record = { event = '(create)', payload = data, outcome = taken and 'taken' or 'failed', error = failure }
    record.transitions = json.list()
    for i, transition in ipairs(ctx.edges) do record.transitions[i] = transition.id end
    record.work = ctx.work or work_budget.count_spent()
    if taken then
        run.raw = memory_instances.settle(ctx, 1)
        note_step(run, record, ctx, NONE)
    end
    emit(encode(run, record))
    return nil
end

return simulations
