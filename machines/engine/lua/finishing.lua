-- needs: commit, core, delivering, instances, jobs, json, keys, program, replies, steps, values
-- The end of a job and the event it sends its instance, as one step.
local finishing = {}

local FACTS = { type = 'external' }

-- The instance a job's invoke belongs to, if it still waits for that very job.
function finishing.waiting(root, row, job, now)
    if row.invoke == '' then return nil end
    local ctx = instances.open(root, row.instance, now)
    if not ctx or not string.find(' ' .. (ctx.raw._jobs or '') .. ' ', ' ' .. job .. ' ', 1, true) then return nil end
    return ctx
end

-- The instance no longer waits for this job, whatever state it is in afterwards.
local function forget(ctx, job)
    local left = {}
    for other in string.gmatch(ctx.raw._jobs, '%S+') do
        if other ~= job then left[#left + 1] = other end
    end
    ctx.stored_jobs = ctx.raw._jobs
    ctx.raw._jobs = table.concat(left, ' ')
    ctx.jobs = ctx.raw._jobs
    return ctx.raw._jobs
end

local function stop_waiting(ctx, left)
    redis.call('HSET', keys.instance(ctx.program.root, ctx.id), '_jobs', left)
end

-- A suspended instance hears of it when it is resumed.
local function hold(ctx, event, payload, left)
    local from = { machine = ctx.program.machine, id = ctx.id }
    local verdict, why = delivering.hold(ctx, 'event', { event = event, data = json.encode(payload), from = from })
    if verdict ~= 'held' then return { replies.FAULT, why } end
    stop_waiting(ctx, left)
    return { replies.OK }
end

-- Sends `event` to the waiting instance. Answers a reply and the jobs it then waits for: {OK, ...} moved, {OK} nobody
-- listened, or what refused it; then no key has changed.
function finishing.tell(ctx, job, event, payload)
    local left = forget(ctx, job)
    if ctx.raw._suspended then return hold(ctx, event, payload, left), left end
    local listening = core.listens(ctx, event)
    local reply = listening and steps.fire(ctx, event, payload, 'job ' .. job, '', nil, nil, FACTS)
    if reply and (reply[1] == replies.OK or reply[1] == replies.FAULT) then return reply, left end
    local failed = reply and cjson.decode(reply[2]).why == 'error'
    if failed then return reply, left end
    stop_waiting(ctx, left)
    return { replies.OK }, left
end

-- Out of attempts: the job goes to the dead, its instance gets error.invoke.<id>. An instance whose actions refuse that
-- event stays where it is and waits no longer. Answers {OK}, or {FAULT, why} when nothing could be written.
function finishing.bury(root, job, row, now, failure)
    jobs.probe(root, row.queue, 'dead')
    local ctx = finishing.waiting(root, row, job, now)
    if ctx then
        local payload = { error = failure.error, kind = failure.kind, attempts = tonumber(row.attempt) }
        local reply, left = finishing.tell(ctx, job, 'error.invoke.' .. row.invoke, payload)
        if reply[1] == replies.FAULT then return reply end
        if reply[1] ~= replies.OK then stop_waiting(ctx, left) end
    end
    jobs.bury(root, job, row, now)
    redis.call('HSET', keys.job(root, job), 'error', failure.error, 'kind', failure.kind, 'trace', failure.trace)
    return { replies.OK }
end

return finishing
