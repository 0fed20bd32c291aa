-- needs: chart, compiled_steps, dead_jobs, delivery, instances, job_batches, jobs, json, keys, replies, step_jobs
-- needs: steps, traces
-- Ends a job and sends the event of its end to the instance, as one step.
local completion = {}

local call = redis.call
local find_instance, complete = keys.instance, compiled_steps.complete

local recent = { root = nil, prefix = nil, name = nil, invoke = nil, event = nil } -- what jobs that end together share

local FACTS = { type = 'external' }
local DONE = { replies.OK } -- never written

-- Opens the instance that the job's invoke belongs to, if it still waits for this job. `flat`: what HGETALL answered for it;
-- `batch`: the batch of a call that takes several steps.
local function open_instance(root, row, job, key, flat, now, batch)
    local ctx = instances.open_read(root, row.instance, key, flat, now)
    if not ctx then return nil end
    local awaited = ctx.raw._jobs or ''
    if awaited ~= job and not string.find(' ' .. awaited .. ' ', ' ' .. job .. ' ', 1, true) then return nil end
    ctx.batch = batch
    return ctx
end

-- Removes the job from those that the instance waits for, whatever state the step leads to.
function completion.remove_awaited(ctx, job)
    local awaited = step_jobs.remove(ctx.raw._jobs, job) or ctx.raw._jobs
    ctx.raw._jobs, ctx.ending = awaited, job
    return awaited
end

local function store_awaited(ctx, awaited)
    redis.call('HSET', keys.instance(ctx.program.root, ctx.id), '_jobs', awaited)
end

-- A suspended instance gets the event when it is resumed.
local function hold_result(ctx, event, payload, awaited)
    local from = { machine = ctx.program.machine, id = ctx.id }
    local verdict, why = delivery.hold(ctx, 'event', { event = event, data = json.encode(payload), from = from,
        traceparent = traces.current })
    if verdict ~= 'held' then return { replies.FAULT, why } end
    store_awaited(ctx, awaited)
    return { replies.OK }
end

-- Tells whether the step left the state that requested the job.
local function has_left(ctx, invoke)
    if not ctx.chart then return ctx.moved end
    local state = ctx.program.invoked_by[invoke]
    return ctx.has_ended or state ~= nil and ctx.exited[state]
end

-- Sends `event` to the waiting instance. Answers the reply and the jobs that the instance then waits for. {OK, ...}: it took
-- a step; {OK}: no transition listens; any other reply refused the step, and no key has changed.
local function send_result(ctx, job, row, event, payload, ending)
    local awaited = completion.remove_awaited(ctx, job)
    if ctx.raw._suspended then return hold_result(ctx, event, payload, awaited), awaited end
    local listening = chart.has_transition(ctx, event)
    local reply = listening and steps.fire(ctx, event, payload, 'job ' .. job, '', nil, ending.clock, FACTS, row)
    if reply and (reply[1] == replies.OK or reply[1] == replies.FAULT) then return reply, awaited end
    local failed = reply and cjson.decode(reply[2]).why == 'error'
    if failed then return reply, awaited end
    store_awaited(ctx, awaited)
    return { replies.OK }, awaited
end

-- Sends the event of a job's end, `name` before the id of its invoke, to the instance if that still waits for the job.
-- `ending`: now; `clock`, ms of the server's clock where the caller has read it; `batch`; `short`, with the revision in place
-- of the instance; `traced`, with the states before. Answers a reply as `send_result`; where the interpreter took the step,
-- also the instance as it then is and the jobs it then waits for.
function completion.end_invoke(root, job, row, name, payload, ending)
    local id, invoke = row.instance, row.invoke
    if not invoke or invoke == '' then return DONE end
    if recent.root ~= root then recent.root, recent.prefix = root, find_instance(root, '') end
    if recent.invoke ~= invoke or recent.name ~= name then
        recent.name, recent.invoke, recent.event = name, invoke, name .. invoke
    end
    local key, event = recent.prefix .. id, recent.event
    local flat = call('HGETALL', key)
    local reply = complete(root, id, key, flat, event, payload, job, row, ending)
    if reply then return reply end
    local ctx = open_instance(root, row, job, key, flat, ending.now, ending.batch)
    if not ctx then return DONE end
    ctx.before = ending.traced and ctx.raw._state
    local awaited
    reply, awaited = send_result(ctx, job, row, event, payload, ending)
    return reply, ctx, awaited
end

-- Sends error.invoke.<id> for a job that ends without a result. An instance whose actions fail on that event stays where it
-- is and no longer waits. Answers {OK}, or {FAULT, why} when nothing could be written; and whether the instance left the
-- state that requested the job, as each compiled step does.
function completion.send_error(root, job, row, now, failure)
    traces.begin(row.traceparent)
    local payload = { error = failure.error, kind = failure.kind, attempts = tonumber(row.attempt or 0) }
    local reply, ctx, awaited = completion.end_invoke(root, job, row, 'error.invoke.', payload, { now = now, short = true })
    if reply[1] == replies.FAULT then return reply end
    if reply[1] ~= replies.OK then store_awaited(ctx, awaited) end
    local stepped = reply[1] == replies.OK and reply[2] ~= nil
    return DONE, stepped and (not ctx or has_left(ctx, row.invoke))
end

-- Moves a job without attempts left to the dead jobs, or to the handled ones when its instance left the state for it.
function completion.kill(root, job, row, now, failure)
    jobs.check_place(root, row.queue, 'dead')
    jobs.check_place(root, row.queue, 'handled')
    local reply, left = completion.send_error(root, job, row, now, failure)
    if reply[1] ~= replies.OK then return reply end
    if not left and dead_jobs.is_awaited(root, job, row, now) then
        jobs.make_dead(root, job, row, now, 'dead', 'error', failure.error, 'kind', failure.kind, 'trace', failure.trace)
        dead_jobs.note(root, job, row)
    else
        jobs.make_dead(root, job, row, now, 'handled', 'error', failure.error, 'kind', failure.kind, 'trace', failure.trace,
            'handled', now)
    end
    if row.batch then job_batches.count(root, row.batch, 'open', 'failed', { job }, now) end
    return { replies.OK }
end

-- Removes a job from any place. `why`: 'withdrawn' or 'purged'.
function completion.remove(root, job, row, now, why, failure)
    if not jobs.has_ended(row.place) then
        local reply = completion.send_error(root, job, row, now, failure)
        if reply[1] ~= replies.OK then return reply end
    end
    jobs.remove(root, job, why)
    if row.batch and not jobs.has_ended(row.place) then job_batches.count(root, row.batch, 'open', 'failed', { job }, now) end
    return { replies.OK }
end

-- Makes the instance of a dead job wait for it again, if the state that requested it is still active and waits for no other
-- job of the same invoke.
function completion.attach_again(root, row, job, now)
    if (row.invoke or '') == '' then return end
    local ctx = instances.open(root, row.instance, now)
    if not ctx or ctx.raw._done then return end
    local state = ctx.program.invoked_by[row.invoke]
    if not state then return end
    if ctx.chart then
        if not ctx.active[state] then return end
    elseif ctx.state ~= state or tonumber(ctx.raw._entered) ~= tonumber(row.created) then
        return
    end
    local awaited = ctx.raw._jobs or ''
    for other in string.gmatch(awaited, '%S+') do
        if jobs.read_invoke(root, other) == row.invoke then return end
    end
    redis.call('HSET', keys.instance(root, row.instance), '_jobs', awaited == '' and job or awaited .. ' ' .. job)
end

-- Makes a dead or handled job ready with its attempts reset, or a delayed one at once. No instance waits for a handled one
-- again. Tells whether the job moved.
function completion.redrive(root, queue, place, job, now)
    local row = jobs.read(root, job)
    if not row or row.place ~= place or row.queue ~= queue then return false end
    if place == 'delayed' then
        jobs.make_ready(root, job, row, place, now)
        return true
    end
    if row.unique then
        if jobs.find_holder(root, queue, row.unique) then return false end
        redis.call('SET', keys.unique(root, queue, row.unique), job)
    end
    if place == 'dead' then completion.attach_again(root, row, job, now) end
    jobs.make_ready(root, job, row, place, now, 'attempt', 0)
    redis.call('HDEL', keys.job(root, job), 'finished', 'progress')
    if row.batch then job_batches.count(root, row.batch, 'failed', 'open', { job }, now) end
    return true
end

return completion
