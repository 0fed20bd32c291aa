-- needs: batches, chart_writes, data_indexes, due_times, history_entries, job_requests, jobs, json, keys, partition_log
-- needs: step_log, timers, values, version_counters, work_budget
-- The only module that writes a step: index, history, flow, jobs and outbox, then the instance itself, then the pulse. When
-- a write fails, because of a key of another type for example, the earlier writes are undone.
local commit = {}

local sub = string.sub
local call, pcall, unpack = redis.call, pcall, unpack

local HISTORY_SLACK = 16
local PULSE_MS = 50
local MAX_VALUES = 4000 -- values in one command: Lua's stack holds 8000 values
local NONE = {} -- shared by all steps that add no job; never written

local last_pulses, pulse_count = {}, 0
local last_touches, touch_count = {}, 0
local touches_since -- ms: changes before are not known

-- The arguments of HSET, overwritten by every commit; only as many are sent as the commit has filled in.
local hash_values = {}

-- The progress of the current commit, for an undo. One is enough: the server runs one call at a time.
local progress = { added = NONE, indexed = false, counted = 0, history_written = false, history_too_long = false,
    jobs_before = nil, jobs = nil, entered_before = nil, stamp = '0', undo_log = NONE, withdrawn = NONE, ending_jobs = '' }

local function read_clock()
    local time = call('TIME')
    return time[1] * 1000 + time[2] / 1000
end

-- Notes that figures of the partition changed, at most once in 50 ms: a reader of many partitions finds by it which ones to
-- read again. `now` is the server's time in ms where the caller has read it.
function commit.touch(root, now)
    now = now or read_clock()
    local last = last_touches[root]
    if last and now - last < PULSE_MS and now >= last then return end
    if not last then
        if touch_count > 10000 then last_touches, touch_count, touches_since = {}, 0, nil end
        touch_count = touch_count + 1
    end
    touches_since = touches_since or now
    last_touches[root] = now
    redis.pcall('HSET', keys.meta(root), 'touched', string.format('%d', now))
end

-- Tells, from memory, whether figures of the partition may have changed since `since` ms.
function commit.was_touched(root, since, now)
    touches_since = touches_since or now
    if since < touches_since then return true end
    local last = last_touches[root]
    return last ~= nil and last >= since - PULSE_MS
end

-- Rings the pulse, at most once in 50 ms for a partition: until then the key still exists, so it is not tried. `now` is the
-- server's time in ms where the caller has read it.
function commit.ring_pulse(root, now)
    due_times.ring_bell(root)
    now = now or read_clock()
    local last = last_pulses[root]
    if last and now - last < PULSE_MS and now >= last then return end
    if not last then
        if pulse_count > 10000 then last_pulses, pulse_count = {}, 0 end
        pulse_count = pulse_count + 1
    end
    -- A pulse counts only if the key was set: a key that lives to the end of its last millisecond must not silence the next
    -- 50 ms. The step is already written, so a pulse that cannot be set does not fail it.
    local reply = redis.pcall('SET', keys.pulse(root), 1, 'NX', 'PX', PULSE_MS)
    if reply and reply.ok then last_pulses[root] = now end
    commit.touch(root, now)
end

-- Answers the index keys of the previous state, if any, and of the current one.
local function find_indexes(ctx)
    local states = ctx.program.states
    return ctx.origin and states[ctx.origin].index_key, states[ctx.state].index_key
end

local function write_index(ctx)
    local from, to = find_indexes(ctx)
    if ctx.batch and batches.has_move(ctx.batch, from, to) then return end
    progress.indexed = true
    call('ZADD', to, progress.stamp, ctx.id)
    if from and from ~= to then call('ZREM', from, ctx.id) end
end

local function undo_index(ctx)
    local states = ctx.program.states
    if ctx.state ~= ctx.origin then pcall(call, 'ZREM', states[ctx.state].index_key, ctx.id) end
    if ctx.origin then pcall(call, 'ZADD', states[ctx.origin].index_key, progress.entered_before, ctx.id) end
end

-- Adds the changed data to the arguments of HSET. Answers their new count, the names for HDEL, and the changes as the
-- history holds them.
local function collect_data(ctx, args, count, gone)
    local changed, raw, set, unset_text = ctx.changed, ctx.raw, '', ''
    for i = 1, #changed do
        local field = changed[i]
        local name = field.name
        local value = raw[name]
        if value then
            args[count + 1], args[count + 2] = name, value
            count = count + 2
            set = set .. field.set_mark .. (field.plain and value or field.as_json(value))
        else
            gone = gone or {}
            gone[#gone + 1] = name
            unset_text = unset_text .. field.unset_mark
        end
    end
    return count, gone, set .. unset_text
end

-- Adds the bookkeeping fields that only charts, children and suspended instances have. Nothing is written here.
local function collect_bookkeeping(ctx, args, count)
    local raw, gone = ctx.raw, nil
    if not (ctx.timers_changed or ctx.children_changed or ctx.has_ended or next(ctx.changed_meta)) then return count end
    if ctx.timers_changed then raw._timers = timers.encode(ctx) end
    if ctx.children_changed then raw._children = next(ctx.children) and cjson.encode(ctx.children) or nil end
    if ctx.has_ended then raw._done = '1' end
    local changed = { _timers = ctx.timers_changed, _children = ctx.children_changed, _done = ctx.has_ended }
    for name in pairs(ctx.changed_meta) do changed[name] = true end
    for name in pairs(changed) do
        if raw[name] then
            args[count + 1], args[count + 2] = name, raw[name]
            count = count + 2
        else
            gone = gone or {}
            gone[#gone + 1] = name
        end
    end
    return count, gone
end

local function collect_hash(ctx)
    local raw, version = ctx.raw, json.number(ctx.version + 1)
    local args, count = hash_values, 2
    args[1], args[2] = '_version', version
    raw._version = version
    if ctx.moved then
        local stamp = progress.stamp
        raw._state, raw._entered = ctx.chart and ctx.config.text or ctx.program.states[ctx.state].name, stamp
        args[3], args[4], args[5], args[6] = '_state', raw._state, '_entered', stamp
        count = 6
    end
    if ctx.is_new then
        args[count + 1], args[count + 2], args[count + 3], args[count + 4] = '_def', raw._def, '_created', raw._created
        count = count + 4
        if raw._parent then
            args[count + 1], args[count + 2] = '_parent', raw._parent
            count = count + 2
        end
    end
    if ctx.actor_changed then
        args[count + 1], args[count + 2] = '_actor', raw._actor
        count = count + 2
    end
    local removed
    if ctx.changed_meta then count, removed = collect_bookkeeping(ctx, args, count) end
    if ctx.came_changed then
        if raw._came then
            args[count + 1], args[count + 2], count = '_came', raw._came, count + 2
        else
            removed = removed or {}
            removed[#removed + 1] = '_came'
        end
    end
    return collect_data(ctx, args, count, removed)
end

local function append_history(ctx, event, actor, reason, history_payload, changes)
    local program, raw = ctx.program, ctx.raw
    local keep = program.history
    if keep == 0 then return end
    local begin, rest = history_entries.describe(program, ctx.edges, event, ctx.chart and ctx.config.leaves or { ctx.state })
    local length = call('RPUSH', program.history_prefix .. ctx.id,
        history_entries.pack(begin, rest, raw._version, ctx.now, raw._created, actor, reason, history_payload, changes))
    progress.history_written, progress.history_too_long = true, length > keep + HISTORY_SLACK
end

local function trim_history(ctx)
    call('LTRIM', keys.history(ctx.program.root, ctx.id), -ctx.program.history, -1)
end

local function count_flow(ctx)
    local key, edges = ctx.program.flow_key, ctx.edges
    if ctx.batch and batches.has_transitions(ctx.batch, edges) then return end
    for i = 1, #edges do
        call('HINCRBY', key, edges[i].flow, 1)
        progress.counted = i
    end
end

local function undo_flow(ctx)
    local key = ctx.program.flow_key
    for i = 1, progress.counted do
        local flow = ctx.edges[i].flow
        if call('HINCRBY', key, flow, -1) == 0 then call('HDEL', key, flow) end
    end
end

-- Plans the jobs of a flat step before anything is written: an input that fails refuses the step like any other action.
function commit.plan_jobs(ctx)
    local state = ctx.program.states[ctx.state]
    ctx.plans = {}
    if not ctx.moved or not state.invokes[1] then return end
    for i, invoke in ipairs(state.invokes) do
        work_budget.charge(job_requests.JOB)
        local plan = job_requests.plan(ctx, invoke, 'the input of ' .. invoke.id)
        job_requests.check_unique(ctx, invoke, plan)
        ctx.plans[i] = plan
    end
end

-- Adds a job. Answers it, and true when an open job already holds the unique key.
local function add_job(ctx, spec)
    local ending = spec.unique and ' ' .. progress.ending_jobs .. ' ' .. (ctx.ending or '') .. ' '
    local job, there, holder = jobs.enqueue(ctx.program.root, spec, ctx.now, ending)
    if there then return job, true end
    if progress.added == NONE then progress.added = {} end
    table.insert(progress.added, { job = job, spec = spec, holder = holder })
    return job
end

-- Adds the job of an invoke.
local function add_invoke_job(ctx, invoke, plan)
    local job, there = add_job(ctx, job_requests.make_spec(ctx, invoke, plan, invoke.id))
    if there then values.fail('two jobs of one instance have the unique key of ' .. job) end
    return job
end

local function start_invokes(ctx)
    local started = {}
    for i, invoke in ipairs(ctx.program.states[ctx.state].invokes) do
        started[i] = add_invoke_job(ctx, invoke, ctx.plans[i])
    end
    return table.concat(started, ' ')
end

local function write_log_entry(ctx, effect)
    partition_log.append(ctx.program.root, 'kind', effect.kind, 'name', effect.name, 'data', effect.text,
        'machine', ctx.program.machine, 'instance', ctx.id, 'version', ctx.version + 1)
end

-- Jobs before log entries: an entry cannot be undone, so everything that may fail comes first.
local function run_effects(ctx)
    for _, effect in ipairs(ctx.effects) do
        if effect.kind == 'enqueue' then add_job(ctx, job_requests.make_spec(ctx, effect.spec, effect.plan, '')) end
    end
    for _, effect in ipairs(ctx.effects) do
        if effect.kind ~= 'enqueue' then write_log_entry(ctx, effect) end
    end
end

-- In a chart each job belongs to a state: jobs of states left are withdrawn, those of states entered are added.
local function change_jobs(ctx)
    local waiting = progress.jobs_before or ''
    if not ctx.started[1] and (waiting == '' or not ctx.moved and not ctx.has_ended) then return end
    local kept, gone = chart_writes.sort_jobs(ctx, waiting)
    progress.withdrawn, progress.ending_jobs = gone, table.concat(gone, ' ')
    for _, started in ipairs(ctx.started) do kept[#kept + 1] = add_invoke_job(ctx, started.invoke, started.plan) end
    progress.jobs = table.concat(kept, ' ')
end

-- Splits more values than one command can take.
local function call_in_parts(command, key, args, count)
    for from = 1, count, MAX_VALUES do
        call(command, key, unpack(args, from, math.min(from + MAX_VALUES - 1, count)))
    end
end

local function write_instance(ctx, count, gone)
    local args = hash_values
    local awaited = progress.jobs
    if awaited and (ctx.ending or awaited ~= (progress.jobs_before or '')) then
        args[count + 1], args[count + 2] = '_jobs', awaited
        ctx.raw._jobs = awaited
        count = count + 2
    end
    local key = ctx.key
    if count <= MAX_VALUES then call('HSET', key, unpack(args, 1, count)) else call_in_parts('HSET', key, args, count) end
    if gone then call_in_parts('HDEL', key, gone, #gone) end
end

-- Tells whether the step goes into the partition's log. The steps of a batch ask once.
local function is_logged(ctx, clock)
    local root, batch = ctx.program.root, ctx.batch
    if not batch then return step_log.is_on(root, clock) end
    if batch.logs_steps == nil then batch.logs_steps = step_log.is_on(root, clock or read_clock()) end
    return batch.logs_steps
end

local function log_step(ctx, event)
    local state = ctx.chart and chart_writes.quote_configuration(ctx.config) or ctx.program.states[ctx.state].quoted
    step_log.append(ctx.program.root, ctx.program.machine, ctx.id, ctx.raw._version, event, sub(state, 2))
end

local function write(ctx, event, actor, reason, history_payload, clock)
    if ctx.program.indexed then data_indexes.write(ctx) end
    local count, gone, changes = collect_hash(ctx)
    if ctx.chart then
        if ctx.moved then chart_writes.add_to_indexes(ctx, progress.undo_log, progress.stamp) end
    elseif ctx.moved then
        write_index(ctx)
    end
    append_history(ctx, event, actor, reason, history_payload, changes)
    count_flow(ctx)
    if ctx.is_new then
        call('HINCRBY', keys.meta(ctx.program.root), 'instances', 1)
        progress.instance_counted = true
        version_counters.add(ctx.program.root, ctx.program.version, ctx.id, true)
        progress.version_counted = true
    end
    if ctx.chart then
        change_jobs(ctx)
        if ctx.timers_changed then chart_writes.write_timers(ctx, progress.undo_log) end
        if ctx.messages[1] then chart_writes.post_messages(ctx, progress.undo_log) end
    elseif ctx.moved then
        progress.jobs = ctx.program.states[ctx.state].invokes[1] and start_invokes(ctx) or ''
    end
    if ctx.effects[1] then run_effects(ctx) end
    if is_logged(ctx, clock) then log_step(ctx, event) end
    write_instance(ctx, count, gone)
    if ctx.chart and ctx.moved then chart_writes.remove_from_indexes(ctx) end
end

local function undo(ctx)
    if ctx.program.indexed then data_indexes.undo() end
    if progress.indexed then undo_index(ctx) end
    if ctx.chart then chart_writes.undo(progress.undo_log) end
    if progress.version_counted then version_counters.undo(ctx.program.root, ctx.program.version, ctx.id) end
    if progress.instance_counted then call('HINCRBY', keys.meta(ctx.program.root), 'instances', -1) end
    if progress.history_written then call('RPOP', keys.history(ctx.program.root, ctx.id)) end
    undo_flow(ctx)
    for i = #progress.added, 1, -1 do
        local added = progress.added[i]
        jobs.undo_enqueue(ctx.program.root, added.job, added.spec, added.holder)
    end
end

local function withdraw_jobs(ctx)
    if ctx.chart then
        for _, job in ipairs(progress.withdrawn) do jobs.remove(ctx.program.root, job, 'withdrawn') end
        return
    end
    for job in string.gmatch(progress.jobs_before, '%S+') do jobs.remove(ctx.program.root, job, 'withdrawn') end
end

-- The step dealt with the dead jobs of the states that it left.
local function handle_dead_jobs(ctx)
    local named = {}
    if ctx.chart then
        local _, gone = chart_writes.sort_jobs(ctx, ctx.raw._dead)
        named = gone
    else
        for job in string.gmatch(ctx.raw._dead, '%S+') do named[#named + 1] = job end
    end
    jobs.handle_all(ctx.program.root, ctx.id, named, ctx.now)
end

-- Rings the bells of the queues to which ready jobs were added.
local function ring_bells(ctx)
    local added = progress.added
    for i = 1, #added do
        local spec = added[i].spec
        if (spec.delay or 0) == 0 then
            if ctx.batch then batches.add_ready_job(ctx.batch, spec.queue) else jobs.ring_bell(ctx.program.root, spec.queue) end
        end
    end
end

-- Leaves to the batch the writes that its other steps have in common with this one.
local function add_to_batch(ctx, batch)
    if ctx.moved and not ctx.chart then
        local from, to = find_indexes(ctx)
        batches.add_move(batch, from, to, ctx.id, progress.indexed)
    end
    batches.add_transitions(batch, ctx.program.flow_key, ctx.edges, progress.counted > 0)
end

-- Stores the actor until another one acts. Timers, jobs and other instances are no actors.
local function store_actor(ctx, actor)
    if ctx.by_engine or ctx.ending or ctx.raw._actor == actor then return end
    ctx.actor_changed, ctx.previous_actor, ctx.raw._actor = true, ctx.raw._actor, actor
end

-- Writes the step. `history_payload`: the payload as JSON for the history, or '0'; `clock`: ms of the server's clock where
-- the caller has read it. Answers true, or nil and why nothing was written.
function commit.write_step(ctx, event, actor, reason, history_payload, clock)
    work_budget.stop()
    progress.added, progress.counted, progress.history_written, progress.history_too_long = NONE, 0, false, false
    progress.indexed, progress.jobs = false, ctx.ending and ctx.raw._jobs
    progress.stamp = json.number(ctx.now)
    progress.jobs_before, progress.entered_before = ctx.raw._jobs, ctx.raw._entered
    progress.instance_counted, progress.version_counted = false, false
    progress.ending_jobs = not ctx.chart and ctx.moved and ctx.raw._jobs or ''
    if ctx.chart then progress.undo_log, progress.withdrawn = {}, NONE end
    if actor ~= '' then store_actor(ctx, actor) end
    if not ctx.batch then clock = clock or read_clock() end
    local ok, caught = pcall(write, ctx, event, actor, reason, history_payload, clock)
    if not ok then
        undo(ctx)
        return nil, type(caught) == 'table' and caught.err or values.describe_error(caught)
    end
    if progress.history_too_long then trim_history(ctx) end
    ring_bells(ctx)
    if (ctx.moved or ctx.has_ended) and progress.jobs_before and progress.jobs_before ~= '' then withdraw_jobs(ctx) end
    if ctx.raw._dead and (ctx.moved or ctx.has_ended) then handle_dead_jobs(ctx) end
    if ctx.batch then add_to_batch(ctx, ctx.batch) else commit.ring_pulse(ctx.program.root, clock) end
    return true
end

-- Writes only jobs and log entries, of an instance that is about to be deleted.
function commit.carry_out_effects(ctx)
    work_budget.stop()
    progress.added, progress.ending_jobs = NONE, ''
    run_effects(ctx)
    ring_bells(ctx)
end

local function rewrite(ctx)
    local count, gone = collect_bookkeeping(ctx, hash_values, 0)
    if ctx.timers_changed then chart_writes.write_timers(ctx, progress.undo_log) end
    if ctx.messages and ctx.messages[1] then chart_writes.post_messages(ctx, progress.undo_log) end
    if count > 0 then call('HSET', ctx.key, unpack(hash_values, 1, count)) end
    if gone then call('HDEL', ctx.key, unpack(gone)) end
end

-- Writes only bookkeeping: a timer that ended, a message that was sent. No step: version and history stay.
function commit.write_bookkeeping(ctx)
    work_budget.stop()
    progress.undo_log = {}
    local ok, caught = pcall(rewrite, ctx)
    if ok then
        commit.ring_pulse(ctx.program.root)
        return true
    end
    chart_writes.undo(progress.undo_log)
    return nil, type(caught) == 'table' and caught.err or values.describe_error(caught)
end

return commit
