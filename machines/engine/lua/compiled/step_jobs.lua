-- needs: batches, job_requests, jobs
-- The jobs of compiled steps: those of the state that a step enters, and those that the state it leaves waited for. Writes
-- the same as `commit`.
local step_jobs = {}

local added = {} -- the jobs of the current step, for an undo: the server runs one call at a time

-- Tells whether the jobs of these invokes need no expression.
function step_jobs.are_plain(invokes)
    for _, invoke in ipairs(invokes) do
        if not invoke.plain then return false end
    end
    return true
end

-- Adds a job for each invoke. Answers their ids, as the hash of the instance holds them.
function step_jobs.start(root, id, invokes, now)
    local owner, started = { id = id }, {}
    added = {}
    for i, invoke in ipairs(invokes) do
        local spec = job_requests.make_spec(owner, invoke, nil, invoke.id)
        local job = jobs.enqueue(root, spec, now)
        added[i], started[i] = { job = job, spec = spec }, job
    end
    return table.concat(started, ' ')
end

function step_jobs.undo(root)
    for i = #added, 1, -1 do jobs.undo_enqueue(root, added[i].job, added[i].spec) end
    added = {}
end

-- Forgets the jobs of the step before.
function step_jobs.begin()
    if added[1] then added = {} end
end

-- Rings the bells of the queues that got a job.
function step_jobs.ring(root, invokes, batch)
    for _, invoke in ipairs(invokes) do
        if batch then batches.add_ready_job(batch, invoke.queue) else jobs.ring_bell(root, invoke.queue) end
    end
end

-- Withdraws the jobs that the instance waited for.
function step_jobs.withdraw(root, awaited)
    for job in string.gmatch(awaited, '%S+') do jobs.remove(root, job, 'withdrawn') end
end

return step_jobs
