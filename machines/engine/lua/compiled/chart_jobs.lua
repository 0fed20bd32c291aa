-- needs: batches, chart_writes, job_requests, jobs
-- The jobs of compiled steps of charts: those of the states that a step enters, those that its actions request, and those
-- that the states it leaves waited for. Writes the same as `commit`. `plan`: what is known since the step was compiled.
local chart_jobs = {}

local concat, find, gmatch = table.concat, string.find, string.gmatch

local added = {} -- the jobs of the current step, for an undo: the server runs one call at a time

-- Removes an ended job from those that the instance waits for; nil when it does not wait for it.
local function remove_ended(awaited, ending)
    if awaited == ending then return '' end
    if not find(' ' .. awaited .. ' ', ' ' .. ending .. ' ', 1, true) then return nil end
    local others = {}
    for other in gmatch(awaited, '%S+') do
        if other ~= ending then others[#others + 1] = other end
    end
    return concat(others, ' ')
end

-- Answers the jobs that the instance waits for after the step but for new ones, and a list of those to withdraw; nil where the
-- interpreter has to look.
function chart_jobs.leave(program, plan, awaited, ending)
    if ending then awaited = remove_ended(awaited, ending) end
    if not awaited or awaited == '' or not plan.moved and not plan.has_ended then return awaited end
    local kept, gone = chart_writes.sort_jobs({ program = program, exited = plan.exited, has_ended = plan.has_ended }, awaited)
    return concat(kept, ' '), gone
end

local function add(root, id, request, invoke, now)
    local spec = job_requests.make_spec({ id = id }, request, nil, invoke)
    local job = jobs.enqueue(root, spec, now)
    added[#added + 1] = { job = job, spec = spec }
    return job
end

-- Adds the jobs of the states entered. Answers all that the instance waits for.
function chart_jobs.start(program, plan, id, awaited, now)
    for _, invoke in ipairs(plan.started) do
        local job = add(program.root, id, invoke, invoke.id, now)
        awaited = awaited == '' and job or awaited .. ' ' .. job
    end
    return awaited
end

-- Adds the jobs that actions have requested.
function chart_jobs.enqueue(program, plan, id, now)
    for _, request in ipairs(plan.requested) do add(program.root, id, request, '', now) end
end

-- Rings the bells of the queues that got a job, and withdraws the jobs of states left.
function chart_jobs.finish(program, gone, batch)
    for _, one in ipairs(added) do
        if batch then batches.add_ready_job(batch, one.spec.queue) else jobs.ring_bell(program.root, one.spec.queue) end
    end
    for _, job in ipairs(gone or {}) do jobs.remove(program.root, job, 'withdrawn') end
end

-- Forgets the jobs of the step before.
function chart_jobs.begin()
    if added[1] then added = {} end
end

function chart_jobs.undo(root)
    for i = #added, 1, -1 do jobs.undo_enqueue(root, added[i].job, added[i].spec) end
    added = {}
end

return chart_jobs
