-- needs: batches, chart_writes, data_indexes, due_times, job_requests, jobs, json, keys, partition_log, programs
-- needs: timers, values, work_budget
-- The one place that writes a step: index, history, flow, jobs and outbox, then the instance itself, then the
-- pulse. Should a write fail (a key of a foreign type in the way), what was written is taken back.
local commit = {}

local sub = string.sub
local call, pcall, unpack = redis.call, pcall, unpack

local HISTORY_SLACK = 16
local PULSE_MS = 50
local MOST_WORDS = 4000 -- of one command: Lua's stack holds 8000 values
local NONE = {} -- shared by all steps that add no job; never written

local rung, remembered = {}, 0

-- What HSET is given, filled anew by every commit; only as much of it is sent as that commit has filled.
local words = {}

-- How far the commit under way has come, for taking it back. One at a time: the server runs no two calls at once.
local progress = { added = NONE, indexed = false, counted = 0, remembered = false, overlong = false, was_jobs = nil,
    jobs = nil, was_entered = nil, stamp = '0', back = NONE, withdrawn = NONE, going = '' }

-- At most one notification in 50 ms for a partition; between two the key would still be there, so it is not tried.
-- `now` is the server's own time in ms where the caller has read it already.
function commit.pulse(root, now)
    due_times.ring_bell(root)
    if not now then
        local time = call('TIME')
        now = time[1] * 1000 + time[2] / 1000
    end
    local last = rung[root]
    if last and now - last < PULSE_MS and now >= last then return end
    if not last then
        if remembered > 10000 then rung, remembered = {}, 0 end
        remembered = remembered + 1
    end
    -- Only a ring that was heard counts: the key lives to the end of its last millisecond, and a try that met it there
    -- must not silence the next 50.
    -- A ring is no part of the step, which is written already: one that cannot be rung is no reason to fail.
    local heard = redis.pcall('SET', keys.pulse(root), 1, 'NX', 'PX', PULSE_MS)
    if heard and heard.ok then rung[root] = now end
end

-- The index of the state it was in, if any, and of the one it is in.
local function way(ctx)
    local states = ctx.program.states
    return ctx.origin and states[ctx.origin].index_key, states[ctx.state].index_key
end

local function index(ctx)
    local from, to = way(ctx)
    if ctx.batch and batches.knows_way(ctx.batch, from, to) then return end
    progress.indexed = true
    call('ZADD', to, progress.stamp, ctx.id)
    if from and from ~= to then call('ZREM', from, ctx.id) end
end

local function unindex(ctx)
    local states = ctx.program.states
    if ctx.state ~= ctx.origin then pcall(call, 'ZREM', states[ctx.state].index_key, ctx.id) end
    if ctx.origin then pcall(call, 'ZADD', states[ctx.origin].index_key, progress.was_entered, ctx.id) end
end

-- `,"t3",` or `,"t3 t4",`: between commas, as it stands in a history entry.
local function quoted_edges(edges)
    local listed = {}
    for i, edge in ipairs(edges) do listed[i] = edge.id end
    return ',' .. json.quote(table.concat(listed, ' ')) .. ','
end

-- Adds the changed data to what HSET takes; answers its new length, the names HDEL takes, and both as the history
-- tells them: `{"field":value}` and, for fields that went, `,["field"]`.
local function changes(ctx, args, count, gone)
    local changed, raw, set, told = ctx.changed, ctx.raw, '', nil
    for i = 1, #changed do
        local field = changed[i]
        local name = field.name
        local value = raw[name]
        if value then
            args[count + 1], args[count + 2] = name, value
            count = count + 2
            set = set .. field.quoted .. (field.plain and value or field.as_json(value))
        else
            gone = gone or {}
            gone[#gone + 1] = name
            told = (told and told .. ',' or ',[') .. json.quote(name)
        end
    end
    return count, gone, set ~= '' and '{' .. sub(set, 2) .. '}' or '0', told and told .. ']' or ''
end

-- What HSET takes: bookkeeping first, data after. Nothing is written yet.
-- The bookkeeping only charts, children and suspended instances have.
local function note(ctx, args, count)
    local raw, gone = ctx.raw, nil
    if not (ctx.timers_changed or ctx.children_changed or ctx.over or next(ctx.noted)) then return count end
    if ctx.timers_changed then raw._timers = timers.encode(ctx) end
    if ctx.children_changed then raw._children = next(ctx.children) and cjson.encode(ctx.children) or nil end
    if ctx.over then raw._done = '1' end
    local changed = { _timers = ctx.timers_changed, _children = ctx.children_changed, _done = ctx.over }
    for name in pairs(ctx.noted) do changed[name] = true end
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

local function gather(ctx)
    local raw, version = ctx.raw, json.number(ctx.version + 1)
    local args, count = words, 2
    args[1], args[2] = '_version', version
    raw._version = version
    if ctx.moved then
        local stamp = progress.stamp
        raw._state, raw._entered = ctx.chart and ctx.config.text or ctx.program.states[ctx.state].name, stamp
        args[3], args[4], args[5], args[6] = '_state', raw._state, '_entered', stamp
        count = 6
    end
    if ctx.born then
        args[count + 1], args[count + 2], args[count + 3], args[count + 4] = '_def', raw._def, '_created', raw._created
        count = count + 4
        if raw._parent then
            args[count + 1], args[count + 2] = '_parent', raw._parent
            count = count + 2
        end
    end
    if ctx.named then
        args[count + 1], args[count + 2] = '_actor', raw._actor
        count = count + 2
    end
    local noted
    if ctx.noted then count, noted = note(ctx, args, count) end
    return changes(ctx, args, count, noted)
end

-- [version, ms, event, state, transitions, actor, reason, payload, set, unset]; 0 where there is nothing.
local function entry(ctx, event, actor, reason, noted, set, gone)
    local edges = ctx.edges
    return '[' .. ctx.raw._version .. ',' .. progress.stamp .. ','
        .. (ctx.program.quoted_events[event] or programs.quoted_event(ctx.program, event))
        .. (ctx.chart and chart_writes.quoted(ctx.config) or ctx.program.states[ctx.state].quoted)
        .. (edges[2] == nil and edges[1] and edges[1].quoted or quoted_edges(edges))
        .. (actor == '' and '0,' or json.quote(actor) .. ',')
        .. (reason == '' and '0,' or json.quote(reason) .. ',')
        .. noted .. ',' .. set .. gone .. ']'
end

local function remember(ctx, text)
    local keep = ctx.program.history
    if keep == 0 then return end
    local length = call('RPUSH', ctx.program.history_prefix .. ctx.id, text)
    progress.remembered, progress.overlong = true, length > keep + HISTORY_SLACK
end

local function forget_oldest(ctx)
    call('LTRIM', keys.history(ctx.program.root, ctx.id), -ctx.program.history, -1)
end

local function count_flow(ctx)
    local key, edges = ctx.program.flow_key, ctx.edges
    if ctx.batch and batches.knows_edges(ctx.batch, edges) then return end
    for i = 1, #edges do
        call('HINCRBY', key, edges[i].flow, 1)
        progress.counted = i
    end
end

local function uncount_flow(ctx)
    local key = ctx.program.flow_key
    for i = 1, progress.counted do
        local flow = ctx.edges[i].flow
        if call('HINCRBY', key, flow, -1) == 0 then call('HDEL', key, flow) end
    end
end

-- Work is planned before anything is written: an input that fails refuses the step like any other action.
function commit.prepare(ctx)
    local state = ctx.program.states[ctx.state]
    ctx.plans = {}
    if not ctx.moved or not state.invokes[1] then return end
    for i, invoke in ipairs(state.invokes) do
        work_budget.charge(job_requests.JOB)
        local plan = job_requests.plan(ctx, invoke, 'the input of ' .. invoke.id)
        job_requests.claim(ctx, invoke, plan)
        ctx.plans[i] = plan
    end
end

-- Answers the job, and whether it was there already: the one that holds the unique key.
local function add_job(ctx, spec)
    local going = spec.unique and ' ' .. progress.going .. ' ' .. (ctx.ending or '') .. ' '
    local job, there, holder = jobs.enqueue(ctx.program.root, spec, ctx.now, going)
    if there then return job, true end
    if progress.added == NONE then progress.added = {} end
    table.insert(progress.added, { job = job, spec = spec, holder = holder })
    return job
end

-- The job of an invoke.
local function start(ctx, invoke, plan)
    local job, there = add_job(ctx, job_requests.spec(ctx, invoke, plan, invoke.id))
    if there then values.fail('two jobs of one instance have the unique key of ' .. job) end
    return job
end

local function start_invokes(ctx)
    local started = {}
    for i, invoke in ipairs(ctx.program.states[ctx.state].invokes) do
        started[i] = start(ctx, invoke, ctx.plans[i])
    end
    return table.concat(started, ' ')
end

local function post(ctx, effect)
    partition_log.append(ctx.program.root, 'kind', effect.kind, 'name', effect.name, 'data', effect.text,
        'machine', ctx.program.machine, 'instance', ctx.id, 'version', ctx.version + 1)
end

-- Jobs before messages: a message cannot be taken back, so that whatever may fail comes first.
local function carry_out(ctx)
    for _, effect in ipairs(ctx.effects) do
        if effect.kind == 'enqueue' then add_job(ctx, job_requests.spec(ctx, effect.spec, effect.plan, '')) end
    end
    for _, effect in ipairs(ctx.effects) do
        if effect.kind ~= 'enqueue' then post(ctx, effect) end
    end
end

-- A chart's jobs belong to states of their own: those of states left go, those of states entered come.
local function change_work(ctx)
    local waiting = progress.was_jobs or ''
    if not ctx.started[1] and (waiting == '' or not ctx.moved and not ctx.over) then return end
    local kept, gone = chart_writes.sorted_jobs(ctx, waiting)
    progress.withdrawn, progress.going = gone, table.concat(gone, ' ')
    for _, started in ipairs(ctx.started) do kept[#kept + 1] = start(ctx, started.invoke, started.plan) end
    progress.jobs = table.concat(kept, ' ')
end

-- More words than one call can take: several calls.
local function in_parts(command, key, args, count)
    for from = 1, count, MOST_WORDS do
        call(command, key, unpack(args, from, math.min(from + MOST_WORDS - 1, count)))
    end
end

local function write_instance(ctx, count, gone)
    local args = words
    local waits = progress.jobs
    if waits and (ctx.ending or waits ~= (progress.was_jobs or '')) then
        args[count + 1], args[count + 2] = '_jobs', waits
        ctx.raw._jobs = waits
        count = count + 2
    end
    local key = ctx.key
    if count <= MOST_WORDS then call('HSET', key, unpack(args, 1, count)) else in_parts('HSET', key, args, count) end
    if gone then in_parts('HDEL', key, gone, #gone) end
end

local function write(ctx, event, actor, reason, noted)
    if ctx.program.indexed then data_indexes.write(ctx) end
    local count, gone, set, unset = gather(ctx)
    if ctx.chart then
        if ctx.moved then chart_writes.index(ctx, progress.back, progress.stamp) end
    elseif ctx.moved then
        index(ctx)
    end
    remember(ctx, entry(ctx, event, actor, reason, noted, set, unset))
    count_flow(ctx)
    if ctx.born then
        call('HINCRBY', keys.meta(ctx.program.root), 'instances', 1)
        progress.counted_in = true
    end
    if ctx.chart then
        change_work(ctx)
        if ctx.timers_changed then chart_writes.schedule(ctx, progress.back) end
        if ctx.mail[1] then chart_writes.post(ctx, progress.back) end
    elseif ctx.moved then
        progress.jobs = ctx.program.states[ctx.state].invokes[1] and start_invokes(ctx) or ''
    end
    if ctx.effects[1] then carry_out(ctx) end
    write_instance(ctx, count, gone)
    if ctx.chart and ctx.moved then chart_writes.unindex(ctx) end
end

local function undo(ctx)
    if ctx.program.indexed then data_indexes.undo() end
    if progress.indexed then unindex(ctx) end
    if ctx.chart then chart_writes.take_back(progress.back) end
    if progress.counted_in then call('HINCRBY', keys.meta(ctx.program.root), 'instances', -1) end
    if progress.remembered then call('RPOP', keys.history(ctx.program.root, ctx.id)) end
    uncount_flow(ctx)
    for i = #progress.added, 1, -1 do
        local added = progress.added[i]
        jobs.undo_enqueue(ctx.program.root, added.job, added.spec, added.holder)
    end
end

local function withdraw(ctx)
    if ctx.chart then
        for _, job in ipairs(progress.withdrawn) do jobs.remove(ctx.program.root, job, 'withdrawn') end
        return
    end
    for job in string.gmatch(progress.was_jobs, '%S+') do jobs.remove(ctx.program.root, job, 'withdrawn') end
end

-- For the jobs that were added and are ready.
local function ring(ctx)
    local added = progress.added
    for i = 1, #added do
        local spec = added[i].spec
        if (spec.delay or 0) == 0 then
            if ctx.batch then batches.ring(ctx.batch, spec.queue) else jobs.ring_bell(ctx.program.root, spec.queue) end
        end
    end
end

-- Leaves to the batch what other steps of it write as well.
local function share(ctx, batch)
    if ctx.moved and not ctx.chart then
        local from, to = way(ctx)
        batches.go(batch, from, to, ctx.id, progress.indexed)
    end
    batches.count(batch, ctx.program.flow_key, ctx.edges, progress.counted > 0)
end

-- Who acts is kept until somebody else does. Timers, jobs and other instances are nobody.
local function sign(ctx, actor)
    if ctx.own or ctx.ending or ctx.raw._actor == actor then return end
    ctx.named, ctx.renamed, ctx.raw._actor = true, ctx.raw._actor, actor
end

-- Writes the step. `noted`: the payload as JSON for the history, or '0'; `clock`: ms of the server's own clock where it
-- was read already.
-- Answers true, or nil and why nothing was written.
function commit.step(ctx, event, actor, reason, noted, clock)
    work_budget.stop()
    progress.added, progress.counted, progress.remembered, progress.overlong = NONE, 0, false, false
    progress.indexed, progress.jobs = false, ctx.ending and ctx.raw._jobs
    progress.stamp = json.number(ctx.now)
    progress.was_jobs, progress.was_entered, progress.counted_in = ctx.raw._jobs, ctx.raw._entered, false
    progress.going = not ctx.chart and ctx.moved and ctx.raw._jobs or ''
    if ctx.chart then progress.back, progress.withdrawn = {}, NONE end
    if actor ~= '' then sign(ctx, actor) end
    local ok, caught = pcall(write, ctx, event, actor, reason, noted)
    if not ok then
        undo(ctx)
        return nil, type(caught) == 'table' and caught.err or values.message(caught)
    end
    if progress.overlong then forget_oldest(ctx) end
    ring(ctx)
    if (ctx.moved or ctx.over) and progress.was_jobs and progress.was_jobs ~= '' then withdraw(ctx) end
    if ctx.batch then share(ctx, ctx.batch) else commit.pulse(ctx.program.root, clock) end
    return true
end

-- Jobs, messages and log lines alone: of an instance that is about to go.
function commit.effects(ctx)
    work_budget.stop()
    progress.added, progress.going = NONE, ''
    carry_out(ctx)
    ring(ctx)
end

local function rewrite(ctx)
    local count, gone = note(ctx, words, 0)
    if ctx.timers_changed then chart_writes.schedule(ctx, progress.back) end
    if ctx.mail and ctx.mail[1] then chart_writes.post(ctx, progress.back) end
    if count > 0 then call('HSET', ctx.key, unpack(words, 1, count)) end
    if gone then call('HDEL', ctx.key, unpack(gone)) end
end

-- Bookkeeping alone: a timer that ended, a message that went out. No step: version and history stay.
function commit.keep(ctx)
    work_budget.stop()
    progress.back = {}
    local ok, caught = pcall(rewrite, ctx)
    if ok then
        commit.pulse(ctx.program.root)
        return true
    end
    chart_writes.take_back(progress.back)
    return nil, type(caught) == 'table' and caught.err or values.message(caught)
end

return commit
