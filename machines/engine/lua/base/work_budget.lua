-- before each call: stop
-- What one step may cost the server, which does nothing else meanwhile. Work is counted and not timed, so that a step ends
-- alike on every machine. A unit is about a tenth of a microsecond (benchmarks/README.md says how that was measured).
-- The count begins with the picture of an instance and ends with its commit; outside of steps nothing is counted.
local work_budget = {}

local STEP = 250000 -- 25 ms: reading the payload, guards, actions, and what they ask to be written
local EXPLANATION = 60000 -- 6 ms: why an event was refused

local left = math.huge
local whole = STEP

local function overrun()
    local what = whole == STEP and 'the step' or 'the explanation'
    error({ sb = string.format('%s needs more than the %d units of work that one may take', what, whole), hard = true })
end

local function start(units)
    left, whole = units, units
end

function work_budget.start() start(STEP) end
function work_budget.start_explanation() start(EXPLANATION) end
function work_budget.stop() left = math.huge end

-- Takes units away; throws what no block of actions catches once none are left, and again at each later charge.
function work_budget.charge(units)
    left = left - units
    if left < 0 then overrun() end
end

-- Was there too much work since it was started?
function work_budget.exceeded() return left < 0 end

-- How many units were taken since it was started; 0 outside of steps.
function work_budget.spent() return left < math.huge and whole - left or 0 end

-- Passes on what an expression threw because the work is used up: nothing may take it for an error of the expression.
function work_budget.pass(caught)
    if type(caught) == 'table' and caught.hard then error(caught, 0) end
end

return work_budget
