-- needs: jobs, json, keys
-- What an instance waits for: the work its active states have asked for, and where each of those jobs is.
local awaited_jobs = {}

local MOST_DEAD = 10000 -- as many as a queue keeps

local function active(ctx)
    return ctx.chart and ctx.config.all or { ctx.state }
end

-- The newest dead job of the instance for this invoke. One from an earlier stay in a flat machine's state is none.
local function dead_job(ctx, invoke)
    local root = ctx.program.root
    local dead = redis.pcall('ZREVRANGE', keys.dead(root, invoke.queue), 0, MOST_DEAD - 1)
    if dead.err then return nil end
    for _, job in ipairs(dead) do
        local row = redis.pcall('HMGET', keys.job(root, job), 'instance', 'invoke', 'created')
        if not row.err and row[1] == ctx.id and row[2] == invoke.id
            and (ctx.chart or tonumber(row[3]) == tonumber(ctx.raw._entered)) then
            return job
        end
    end
    return nil
end

local function open_jobs(ctx)
    local found = {}
    for job in string.gmatch(ctx.raw._jobs or '', '%S+') do
        local row = jobs.read(ctx.program.root, job)
        if row and row.invoke then found[row.invoke] = { id = job, row = row } end
    end
    return found
end

-- One for each invoke of an active state that asks for a job: {invoke, queue, src, state, job, row}; the last two nil where
-- there is none any more. A machine that is invoked is none of them.
function awaited_jobs.list(ctx)
    local found = json.list()
    if ctx.raw._done then return found end
    local open = open_jobs(ctx)
    for _, index in ipairs(active(ctx)) do
        local state = ctx.program.states[index]
        for _, invoke in ipairs(state.invokes) do
            if not invoke.machine then
                local job = open[invoke.id]
                local id = job and job.id or dead_job(ctx, invoke)
                found[#found + 1] = { invoke = invoke.id, queue = invoke.queue, src = invoke.src, state = state.name,
                    job = id, row = job and job.row or id and jobs.read(ctx.program.root, id) or nil, open = job ~= nil }
            end
        end
    end
    return found
end

-- The one of this invoke; nil where the instance does not wait for it.
function awaited_jobs.of(ctx, invoke)
    for _, wait in ipairs(awaited_jobs.list(ctx)) do
        if wait.invoke == invoke then return wait end
    end
    return nil
end

return awaited_jobs
