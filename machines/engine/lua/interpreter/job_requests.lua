-- needs: durations, expressions, jobs, ready_order, values
-- The jobs that a definition requests, by an invoke or by the action `enqueue`. Their expressions are evaluated inside the
-- step, so an error refuses the step like any other action.
local job_requests = {}

local MAX_KEY = 200 -- bytes of a unique key and of a group
job_requests.JOB = 150 -- units of work to write a job

local function compile_optional(node, program)
    if type(node) ~= 'table' then return nil end
    return expressions.compile(node, program)
end

-- Compiles the expressions of an invoke, or of the options of an enqueue.
function job_requests.compile(spec, program)
    spec.make_input = compile_optional(spec.input, program)
    spec.make_priority = compile_optional(spec.priority, program)
    spec.make_delay = compile_optional(spec.delay, program)
    spec.make_unique = compile_optional(spec.unique, program)
    spec.make_group = compile_optional(spec.group, program)
    spec.make_weight = compile_optional(spec.weight, program)
    spec.plain = not (spec.make_input or spec.make_priority or spec.make_delay or spec.make_unique or spec.make_group
        or spec.make_weight)
    spec.non_defaults = spec.plain and jobs.list_non_defaults(spec) or nil
    return spec
end

local function check_priority(value)
    if type(value) ~= 'number' or value % 1 ~= 0 or value < 0 or value > ready_order.LOWEST then
        values.fail('a priority is a whole number from 0 to ' .. ready_order.LOWEST .. ', not ' .. values.describe(value))
    end
    return value
end

-- nil: no unique key, or no group.
local function check_key(value, what)
    if value == nil then return nil end
    local key = type(value) == 'number' and values.describe(value) or values.check_text(value)
    if key == '' or #key > MAX_KEY or string.find(key, '%z') then
        values.fail(what .. ' has 1 to ' .. MAX_KEY .. ' bytes, not ' .. #key)
    end
    return key
end

local function check_weight(value)
    local lowest, highest = ready_order.MIN_WEIGHT, ready_order.MAX_WEIGHT
    if type(value) ~= 'number' or not (value >= lowest and value <= highest) then
        values.fail('a weight is a number from ' .. lowest .. ' to ' .. highest .. ', not ' .. values.describe(value))
    end
    return value
end

-- Evaluates what is particular to one job; nil when the definition has no expressions for it.
function job_requests.plan(ctx, spec, what)
    if spec.plain then return nil end
    return {
        input = spec.make_input and values.encode(what, spec.make_input(ctx)),
        priority = spec.make_priority and check_priority(spec.make_priority(ctx)),
        delay = spec.make_delay and durations.parse(spec.make_delay(ctx)),
        unique = spec.make_unique and check_key(spec.make_unique(ctx), 'a unique key'),
        group = spec.make_group and check_key(spec.make_group(ctx), 'a group'),
        weight = spec.make_weight and check_weight(spec.make_weight(ctx)),
    }
end

-- An invoke waits for a job of its own: when another instance's job holds the unique key, the state cannot be entered. Jobs
-- of this instance are checked when the step is written, because it may be leaving them. A replay adds no job.
function job_requests.check_unique(ctx, spec, plan)
    if not plan or not plan.unique or ctx.replayed then return end
    local holder = jobs.find_holder(ctx.program.root, spec.queue, plan.unique)
    local own = ' ' .. (ctx.raw._jobs or '') .. ' ' .. (ctx.ending or '') .. ' '
    if holder and not string.find(own, ' ' .. holder .. ' ', 1, true) then
        values.fail('the unique key ' .. values.describe(plan.unique) .. ' of queue ' .. spec.queue
            .. ' is held by the open job ' .. holder)
    end
end

-- Makes the argument of jobs.enqueue. `id`: the instance; `invoke`: its id, or '' for a job that no instance waits for.
function job_requests.make_spec(id, spec, plan, invoke)
    if not plan then
        return {
            instance = id,
            invoke = invoke,
            src = spec.src,
            queue = spec.queue,
            priority = spec.priority,
            non_defaults = spec.non_defaults,
        }
    end
    return {
        instance = id,
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
        delay = plan.delay or plan.unique and spec.debounce,
        unique = plan.unique,
        debounce = plan.unique and spec.debounce,
        group = plan.group,
        weight = plan.weight or not spec.make_weight and spec.weight or nil,
    }
end

return job_requests
