-- needs: jobs, json, keys, packed_jobs
-- Lists the jobs that an instance waits for: those its active states have requested by invoke, and where each job is.
local awaited_jobs = {}

local MAX_DEAD = 10000 -- the most dead jobs that a queue keeps

local function active_states(ctx)
    return ctx.chart and ctx.config.all or { ctx.state }
end

-- Finds the newest dead job of the instance for this invoke. In a flat machine a job from an earlier stay in the state does
-- not count.
local function find_dead_job(ctx, invoke)
    local root = ctx.program.root
    local dead = redis.pcall('ZREVRANGE', keys.dead(root, invoke.queue), 0, MAX_DEAD - 1)
    if dead.err then return nil end
    for _, job in ipairs(dead) do
        local row = packed_jobs.read(keys.job(root, job), 'instance', 'invoke', 'created')
        if row and row.instance == ctx.id and row.invoke == invoke.id
            and (ctx.chart or tonumber(row.created) >= tonumber(ctx.raw._entered)) then
            return job
        end
    end
    return nil
end

local function read_open_jobs(ctx)
    local list = {}
    for job in string.gmatch(ctx.raw._jobs or '', '%S+') do
        local row = jobs.read(ctx.program.root, job)
        if row and row.invoke then list[row.invoke] = { id = job, row = row } end
    end
    return list
end

-- Lists one entry for each job invoke of an active state: {invoke, queue, src, state, job, row}; job and row are nil when
-- the job no longer exists. Invoked machines are left out.
function awaited_jobs.list(ctx)
    local list = json.list()
    if ctx.raw._done then return list end
    local open_by_invoke = read_open_jobs(ctx)
    for _, index in ipairs(active_states(ctx)) do
        local state = ctx.program.states[index]
        for _, invoke in ipairs(state.invokes) do
            if not invoke.machine then
                local job = open_by_invoke[invoke.id]
                local id = job and job.id or find_dead_job(ctx, invoke)
                list[#list + 1] = { invoke = invoke.id, queue = invoke.queue, src = invoke.src, state = state.name,
                    job = id, row = job and job.row or id and jobs.read(ctx.program.root, id) or nil, open = job ~= nil }
            end
        end
    end
    return list
end

-- Finds the entry of one invoke; nil when the instance does not wait for it.
function awaited_jobs.find(ctx, invoke)
    for _, wait in ipairs(awaited_jobs.list(ctx)) do
        if wait.invoke == invoke then return wait end
    end
    return nil
end

return awaited_jobs
