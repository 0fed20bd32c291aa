-- needs: core, delivery, instances, jobs, json, keys, replies, steps
-- The end of a job and the event it sends its instance, as one step.
local completion = {}

local FACTS = { type = 'external' }

-- The instance a job's invoke belongs to, if it still waits for that very job. `batch`: of the call's steps, if it takes
-- several.
function completion.waiting(root, row, job, now, batch)
    if (row.invoke or '') == '' then return nil end
    local ctx = instances.open(root, row.instance, now)
    if not ctx then return nil end
    local stored = ctx.raw._jobs or ''
    if stored ~= job and not string.find(' ' .. stored .. ' ', ' ' .. job .. ' ', 1, true) then return nil end
    ctx.batch = batch
    return ctx
end

-- The instance no longer waits for this job, whatever state it is in afterwards.
function completion.forget(ctx, job)
    local left, stored = '', ctx.raw._jobs
    if stored ~= job then
        local others = {}
        for other in string.gmatch(stored, '%S+') do
            if other ~= job then others[#others + 1] = other end
        end
        left = table.concat(others, ' ')
    end
    ctx.raw._jobs, ctx.ending = left, job
    return left
end

local function stop_waiting(ctx, left)
    redis.call('HSET', keys.instance(ctx.program.root, ctx.id), '_jobs', left)
end

-- A suspended instance hears of it when it is resumed.
local function hold(ctx, event, payload, left)
    local from = { machine = ctx.program.machine, id = ctx.id }
    local verdict, why = delivery.hold(ctx, 'event', { event = event, data = json.encode(payload), from = from })
    if verdict ~= 'held' then return { replies.FAULT, why } end
    stop_waiting(ctx, left)
    return { replies.OK }
end

-- Sends `event` to the waiting instance. Answers a reply and the jobs it then waits for: {OK, ...} moved, {OK} nobody
-- listened, or what refused it; then no key has changed. `clock`: ms of the server's own clock where it was read already.
function completion.tell(ctx, job, event, payload, clock)
    local left = completion.forget(ctx, job)
    if ctx.raw._suspended then return hold(ctx, event, payload, left), left end
    local listening = core.listens(ctx, event)
    local reply = listening and steps.fire(ctx, event, payload, 'job ' .. job, '', nil, clock, FACTS)
    if reply and (reply[1] == replies.OK or reply[1] == replies.FAULT) then return reply, left end
    local failed = reply and cjson.decode(reply[2]).why == 'error'
    if failed then return reply, left end
    stop_waiting(ctx, left)
    return { replies.OK }, left
end

-- The job comes to nothing: its instance gets error.invoke.<id>. One whose actions refuse that event stays where it is and
-- waits no longer. Answers {OK}, or {FAULT, why} when nothing could be written.
function completion.disappoint(root, job, row, now, failure)
    local ctx = completion.waiting(root, row, job, now)
    if not ctx then return { replies.OK } end
    local payload = { error = failure.error, kind = failure.kind, attempts = tonumber(row.attempt or 0) }
    local reply, left = completion.tell(ctx, job, 'error.invoke.' .. row.invoke, payload)
    if reply[1] == replies.FAULT then return reply end
    if reply[1] ~= replies.OK then stop_waiting(ctx, left) end
    return { replies.OK }
end

-- Out of attempts: the job goes to the dead.
function completion.bury(root, job, row, now, failure)
    jobs.probe(root, row.queue, 'dead')
    local reply = completion.disappoint(root, job, row, now, failure)
    if reply[1] ~= replies.OK then return reply end
    jobs.bury(root, job, row, now, 'error', failure.error, 'kind', failure.kind, 'trace', failure.trace)
    return { replies.OK }
end

-- Somebody takes a job away, wherever it is. `why`: 'withdrawn' or 'purged'.
function completion.drop(root, job, row, now, why, failure)
    if row.place ~= 'dead' then
        local reply = completion.disappoint(root, job, row, now, failure)
        if reply[1] ~= replies.OK then return reply end
    end
    jobs.remove(root, job, why)
    return { replies.OK }
end

-- Puts a dead job's instance back to waiting for it, where its state is still the one that asked for the work and no other
-- job has taken this one's place.
function completion.reattach(root, row, job, now)
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
    local waiting = ctx.raw._jobs or ''
    for other in string.gmatch(waiting, '%S+') do
        if redis.pcall('HGET', keys.job(root, other), 'invoke') == row.invoke then return end
    end
    redis.call('HSET', keys.instance(root, row.instance), '_jobs', waiting == '' and job or waiting .. ' ' .. job)
end

-- A dead job is ready again with all its attempts, a delayed one at once. Did it move?
function completion.revive(root, queue, place, job, now)
    local row = jobs.read(root, job)
    if not row or row.place ~= place or row.queue ~= queue then return false end
    if place == 'delayed' then
        jobs.release(root, job, row, place, now)
        return true
    end
    if row.unique then
        if jobs.holder(root, queue, row.unique) then return false end
        redis.call('SET', keys.unique(root, queue, row.unique), job)
    end
    completion.reattach(root, row, job, now)
    jobs.release(root, job, row, place, now, 'attempt', 0)
    redis.call('HDEL', keys.job(root, job), 'finished', 'progress')
    return true
end

return completion
