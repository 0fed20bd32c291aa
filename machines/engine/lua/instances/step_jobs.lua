-- needs: batches, job_requests, jobs, keys, shared_lists, values, work_budget
-- The jobs of a step: those of the states that it enters, those that its actions request, and those that the states it leaves
-- waited for. `step`: the context of an interpreted step, or what is known of a compiled one.
local step_jobs = {}

local concat, find, gmatch = table.concat, string.find, string.gmatch
local NONE = shared_lists.NONE

-- The jobs that the current step has added, for an undo, and those that end with it. One of each is enough: the
-- server runs one call at a time.
local added, leaving, ending_job = {}, NONE, nil

-- Splits the jobs that the instance waits for: those that stay, and those of states that the step left.
function step_jobs.sort(step, waiting)
    local kept, gone, program = {}, {}, step.program
    for job in gmatch(waiting, '%S+') do
        local state = step.chart and program.invoked_by[jobs.read_invoke(program.root, job) or '']
        if step.has_ended or not state or step.exited[state] then gone[#gone + 1] = job else kept[#kept + 1] = job end
    end
    return kept, gone
end

-- Removes a job from those that an instance waits for; nil when it does not wait for it.
function step_jobs.remove(awaited, job)
    if awaited == job then return '' end
    if not find(' ' .. awaited .. ' ', ' ' .. job .. ' ', 1, true) then return nil end
    local others = {}
    for other in gmatch(awaited, '%S+') do
        if other ~= job then others[#others + 1] = other end
    end
    return concat(others, ' ')
end

-- Forgets the jobs of the step before.
function step_jobs.begin()
    if added[1] then added = {} end
end

-- Answers the jobs that the instance waits for after the step but for new ones, and a list of those to withdraw. `ending`: the
-- job whose end the step is, if any, which is not among `awaited`.
function step_jobs.leave(step, awaited, ending)
    leaving, ending_job = NONE, ending
    if awaited ~= '' and (step.moved or step.has_ended) then
        local kept
        kept, leaving = step_jobs.sort(step, awaited)
        awaited = concat(kept, ' ')
    end
    return awaited, leaving
end

-- Adds a job. Answers it, and true when an open job already holds the unique key: one that ends with the step holds it no more.
local function add(step, id, request, plan, invoke, now)
    local spec, root = job_requests.make_spec(id, request, plan, invoke), step.program.root
    local ending = spec.unique and ' ' .. concat(leaving, ' ') .. ' ' .. (ending_job or '') .. ' '
    local job, there, before = jobs.enqueue(root, spec, now, ending)
    if not there or before then
        added[#added + 1] = { root = root, job = job, spec = spec, before = before, is_replaced = there }
    end
    return job, there
end

-- Adds the jobs of the states entered. Answers all that the instance waits for.
function step_jobs.start(step, id, awaited, now)
    for _, started in ipairs(step.started or NONE) do
        local job, there = add(step, id, started.invoke, started.plan, started.invoke.id, now)
        if there then values.fail('two jobs of one instance have the unique key of ' .. job) end
        awaited = awaited == '' and job or awaited .. ' ' .. job
    end
    return awaited
end

-- Adds the jobs that actions have requested.
function step_jobs.request(step, id, now)
    for _, effect in ipairs(step.effects) do
        if effect.kind == 'enqueue' then add(step, id, effect.spec, effect.plan, '', now) end
    end
end

function step_jobs.undo()
    for i = #added, 1, -1 do
        local one = added[i]
        if one.is_replaced then
            jobs.undo_replace(one.root, one.job, one.before)
        else
            jobs.undo_enqueue(one.root, one.job, one.spec, one.before)
        end
    end
    added = {}
end

-- Rings the bells of the queues to which ready jobs were added. `clock`: the server's time in ms where the caller has read it.
function step_jobs.ring(batch, clock)
    for _, one in ipairs(added) do
        if (one.spec.delay or 0) == 0 then
            if batch then batches.add_ready_job(batch, one.spec.queue) else jobs.ring_bell(one.root, one.spec.queue, 1, clock) end
        end
    end
end

function step_jobs.withdraw(step, gone)
    for _, job in ipairs(gone) do jobs.remove(step.program.root, job, 'withdrawn') end
end

-- Moves the dead jobs of the states that the step left to the handled ones.
function step_jobs.handle_dead(step, id, dead, now)
    local _, gone = step_jobs.sort(step, dead)
    jobs.handle_all(step.program.root, id, gone, now)
end

return step_jobs
