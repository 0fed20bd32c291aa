-- needs: json, keys, program, jobs, values
-- The one place that writes a step: index, history, flow, jobs and outbox, then the instance itself, then the
-- pulse. Should a write fail (a key of a foreign type in the way), what was written is taken back.
local commit = {}

local sub = string.sub
local call, pcall, unpack = redis.call, pcall, unpack

local KEEP_LOG = 10000
local HISTORY_SLACK = 16
local PULSE_MS = 50
local MOST_WORDS = 4000 -- of one command: Lua's stack holds 8000 values
local NONE = {} -- shared by all steps that add no job; never written
local JOB_DEFAULTS = { attempts = 3, backoff = 1000, lease = 30000 }

local rung, remembered = {}, 0

-- What HSET is given, filled anew by every commit; only as much of it is sent as that commit has filled.
local words = {}

-- How far the commit under way has come, for taking it back. One at a time: the server runs no two calls at once.
local progress = { added = NONE, counted = 0, remembered = false, overlong = false, was_jobs = nil, was_entered = nil,
    stamp = '0' }

-- At most one notification in 50 ms for a partition; between two the key would still be there, so it is not tried.
-- `now` is the server's own time in ms where the caller has read it already.
function commit.pulse(root, now)
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

local function index(ctx)
    local states = ctx.program.states
    local from, to = ctx.origin and states[ctx.origin].index_key, states[ctx.state].index_key
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
local function changes(ctx, args, count)
    local changed, raw, set, gone, told = ctx.changed, ctx.raw, '', nil, nil
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
local function gather(ctx)
    local raw, version = ctx.raw, json.number(ctx.version + 1)
    local args, count = words, 2
    args[1], args[2] = '_version', version
    raw._version = version
    if ctx.moved then
        local stamp = progress.stamp
        raw._state, raw._entered = ctx.program.states[ctx.state].name, stamp
        args[3], args[4], args[5], args[6] = '_state', raw._state, '_entered', stamp
        count = 6
    end
    if ctx.born then
        args[count + 1], args[count + 2], args[count + 3], args[count + 4] = '_def', raw._def, '_created', raw._created
        count = count + 4
    end
    return changes(ctx, args, count)
end

-- [version, ms, event, state, transitions, actor, reason, payload, set, unset]; 0 where there is nothing.
local function entry(ctx, event, actor, reason, noted, set, gone)
    local edges = ctx.edges
    return '[' .. ctx.raw._version .. ',' .. progress.stamp .. ','
        .. (ctx.program.quoted_events[event] or program.quoted_event(ctx.program, event))
        .. ctx.program.states[ctx.state].quoted .. (edges[2] == nil and edges[1] and edges[1].quoted or quoted_edges(edges))
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

-- `input`: JSON text or nil.
local function job_spec(ctx, src, queue, invoke, input)
    return {
        instance = ctx.id,
        invoke = invoke and invoke.id or '',
        src = src,
        queue = queue,
        input = input or '',
        attempts = invoke and invoke.attempts or JOB_DEFAULTS.attempts,
        backoff = invoke and invoke.backoff or JOB_DEFAULTS.backoff,
        lease = invoke and invoke.lease or JOB_DEFAULTS.lease,
    }
end

-- Inputs are computed before anything is written: an input that fails refuses the step like any other action.
function commit.prepare(ctx)
    local state = ctx.program.states[ctx.state]
    ctx.inputs = {}
    if not ctx.moved or not state.invokes[1] then return end
    for i, invoke in ipairs(state.invokes) do
        if invoke.make_input then ctx.inputs[i] = values.encoded('the input of ' .. invoke.id, invoke.make_input(ctx)) end
    end
end

local function add_job(ctx, spec)
    local job = jobs.add(ctx.program.root, spec, ctx.now)
    if progress.added == NONE then progress.added = {} end
    table.insert(progress.added, { job = job, queue = spec.queue })
    return job
end

local function start_invokes(ctx)
    local started = {}
    for i, invoke in ipairs(ctx.program.states[ctx.state].invokes) do
        started[i] = add_job(ctx, job_spec(ctx, invoke.src, invoke.queue, invoke, ctx.inputs[i]))
    end
    return table.concat(started, ' ')
end

local function post(ctx, effect)
    call('XADD', keys.log(ctx.program.root), 'MAXLEN', '~', KEEP_LOG, '*', 'kind', effect.kind,
        'name', effect.name, 'data', effect.text, 'machine', ctx.program.machine,
        'instance', ctx.id, 'version', ctx.version + 1)
end

-- Jobs before messages: a message cannot be taken back, so that whatever may fail comes first.
local function carry_out(ctx)
    for _, effect in ipairs(ctx.effects) do
        if effect.kind == 'enqueue' then add_job(ctx, job_spec(ctx, effect.extra, effect.name, nil, effect.text)) end
    end
    for _, effect in ipairs(ctx.effects) do
        if effect.kind ~= 'enqueue' then post(ctx, effect) end
    end
end

-- More words than one call can take: several calls.
local function in_parts(command, key, args, count)
    for from = 1, count, MOST_WORDS do
        call(command, key, unpack(args, from, math.min(from + MOST_WORDS - 1, count)))
    end
end

local function write_instance(ctx, count, gone)
    local args = words
    if ctx.jobs and ctx.jobs ~= (ctx.stored_jobs or progress.was_jobs or '') then
        args[count + 1], args[count + 2] = '_jobs', ctx.jobs
        ctx.raw._jobs = ctx.jobs
        count = count + 2
    end
    local key = ctx.key
    if count <= MOST_WORDS then call('HSET', key, unpack(args, 1, count)) else in_parts('HSET', key, args, count) end
    if gone then in_parts('HDEL', key, gone, #gone) end
end

local function write(ctx, event, actor, reason, noted)
    local count, gone, set, unset = gather(ctx)
    if ctx.moved then index(ctx) end
    remember(ctx, entry(ctx, event, actor, reason, noted, set, unset))
    count_flow(ctx)
    if ctx.moved then
        ctx.jobs = ctx.program.states[ctx.state].invokes[1] and start_invokes(ctx) or ''
    end
    if ctx.effects[1] then carry_out(ctx) end
    write_instance(ctx, count, gone)
end

local function undo(ctx)
    if ctx.moved then unindex(ctx) end
    if progress.remembered then call('RPOP', keys.history(ctx.program.root, ctx.id)) end
    uncount_flow(ctx)
    for _, added in ipairs(progress.added) do
        jobs.remove(ctx.program.root, added.job)
        jobs.uncount(ctx.program.root)
    end
end

local function withdraw(ctx)
    for job in string.gmatch(progress.was_jobs, '%S+') do jobs.remove(ctx.program.root, job) end
end

-- Writes the step. `noted`: the payload as JSON for the history, or '0'; `clock`: ms of the server's own clock where it
-- was read already.
-- Answers true, or nil and why nothing was written.
function commit.step(ctx, event, actor, reason, noted, clock)
    progress.added, progress.counted, progress.remembered, progress.overlong = NONE, 0, false, false
    progress.stamp = json.number(ctx.now)
    progress.was_jobs, progress.was_entered = ctx.raw._jobs, ctx.raw._entered
    local ok, caught = pcall(write, ctx, event, actor, reason, noted)
    if not ok then
        undo(ctx)
        return nil, type(caught) == 'table' and caught.err or values.message(caught)
    end
    if progress.overlong then forget_oldest(ctx) end
    local added = progress.added
    for i = 1, #added do jobs.ring(ctx.program.root, added[i].queue) end
    if ctx.moved and progress.was_jobs and progress.was_jobs ~= '' then withdraw(ctx) end
    commit.pulse(ctx.program.root, clock)
    return true
end

return commit
