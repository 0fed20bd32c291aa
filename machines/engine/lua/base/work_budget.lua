-- before each call: stop
-- Limits the work of one step, because the server does nothing else meanwhile. Work is counted and not timed, so that a step
-- ends alike on every machine. A unit is about a tenth of a microsecond (benchmarks/README.md says how that was measured).
-- The count starts with the context of an instance and ends with its commit; outside of steps nothing is counted.
local work_budget = {}

local STEP = 250000 -- 25 ms: reading the payload, guards, actions, and preparing what they write
local EXPLANATION = 60000 -- 6 ms: explaining why an event was refused

local UNLIMITED = math.huge
local left = UNLIMITED
local limit = STEP

local function throw_exceeded()
    local what = limit == STEP and 'the step' or 'the explanation'
    error({ sb = string.format('%s needs more than the %d units of work that one may take', what, limit), hard = true })
end

function work_budget.start() left, limit = STEP, STEP end
function work_budget.start_explanation() left, limit = EXPLANATION, EXPLANATION end
function work_budget.stop() left = UNLIMITED end

-- Charges units. Throws when none are left, and again at each later charge; no block of actions can catch this error.
function work_budget.charge(units)
    left = left - units
    if left < 0 then throw_exceeded() end
end

-- Tells whether the work since the start exceeded the limit.
function work_budget.is_exceeded() return left < 0 end

-- Answers the units charged since the start; 0 outside of steps.
function work_budget.count_spent() return left < UNLIMITED and limit - left or 0 end

-- Throws the error of an exceeded budget again: it must not count as an error of an expression.
function work_budget.rethrow_exceeded(caught)
    if type(caught) == 'table' and caught.hard then error(caught, 0) end
end

return work_budget
