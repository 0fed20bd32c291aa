-- needs: durations, expressions, jobs, values
-- The work a definition asks for, by an invoke or by the action `enqueue`: what is computed for each job, inside the step,
-- so that what fails refuses the step like any other action.
local job_requests = {}

local MAX_UNIQUE = 200
job_requests.JOB = 150 -- units of work to write one

local function computed(node, program)
    if type(node) ~= 'table' then return nil end
    return expressions.compile(node, program)
end

-- Gives the source of an invoke, or the options of an enqueue, what evaluates its parts.
function job_requests.compile(spec, program)
    spec.make_input = computed(spec.input, program)
    spec.make_priority = computed(spec.priority, program)
    spec.make_delay = computed(spec.delay, program)
    spec.make_unique = computed(spec.unique, program)
    spec.plain = not (spec.make_input or spec.make_priority or spec.make_delay or spec.make_unique)
    spec.unusual = spec.plain and jobs.list_unusual(spec) or nil
    return spec
end

local function priority(value)
    if type(value) ~= 'number' or value % 1 ~= 0 or value < 0 or value > jobs.LOWEST then
        values.fail('a priority is a whole number from 0 to ' .. jobs.LOWEST .. ', not ' .. values.show(value))
    end
    return value
end

-- None, where the expression gives nothing.
local function unique(value)
    if value == nil then return nil end
    local key = type(value) == 'number' and values.show(value) or values.text(value)
    if key == '' or #key > MAX_UNIQUE or string.find(key, '%z') then
        values.fail('a unique key has 1 to ' .. MAX_UNIQUE .. ' bytes, not ' .. #key)
    end
    return key
end

-- What one job is to be like; nil where the definition says it all.
function job_requests.plan(ctx, spec, what)
    if spec.plain then return nil end
    return {
        input = spec.make_input and values.encoded(what, spec.make_input(ctx)),
        priority = spec.make_priority and priority(spec.make_priority(ctx)),
        delay = spec.make_delay and durations.parse(spec.make_delay(ctx)),
        unique = spec.make_unique and unique(spec.make_unique(ctx)),
    }
end

-- An invoke waits for its own job: where another's holds the key, the state cannot be entered. The instance's own ones are
-- looked at when the step is written: it may be about to leave them.
function job_requests.claim(ctx, spec, plan)
    if not plan or not plan.unique then return end
    local holder = jobs.find_holder(ctx.program.root, spec.queue, plan.unique)
    local own = ' ' .. (ctx.raw._jobs or '') .. ' ' .. (ctx.ending or '') .. ' '
    if holder and not string.find(own, ' ' .. holder .. ' ', 1, true) then
        values.fail('the unique key ' .. values.show(plan.unique) .. ' of queue ' .. spec.queue
            .. ' is held by the open job ' .. holder)
    end
end

-- For jobs.add. `invoke`: its id, or '' for work nobody waits for.
function job_requests.spec(ctx, spec, plan, invoke)
    if not plan then
        return {
            instance = ctx.id,
            invoke = invoke,
            src = spec.src,
            queue = spec.queue,
            priority = spec.priority,
            unusual = spec.unusual,
        }
    end
    return {
        instance = ctx.id,
        invoke = invoke,
        src = spec.src,
        queue = spec.queue,
        input = plan.input,
        attempts = spec.attempts,
        backoff = spec.backoff,
        lease = spec.lease,
        timeout = spec.timeout,
        jitter = spec.jitter,
        stop = spec.stop,
        priority = plan.priority or not spec.make_priority and spec.priority or nil,
        delay = plan.delay,
        unique = plan.unique,
    }
end

return job_requests
