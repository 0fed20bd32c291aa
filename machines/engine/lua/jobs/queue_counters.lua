-- needs: keys
-- Counters of what happened on a queue, which only grow: rates are differences. One hash for each queue, one increment for
-- each event of a job. A counter that cannot be written does not fail the call.
local queue_counters = {}

local frexp = math.frexp

function queue_counters.increment(root, queue, what, by)
    redis.pcall('HINCRBY', keys.stats(root, queue), what, by or 1)
end

-- Answers the bucket of a duration: 0 is below 1 ms, and n stands for 2^(n-1) up to 2^n ms.
function queue_counters.find_bucket(ms)
    if ms < 1 then return 0 end
    local _, exponent = frexp(ms)
    return exponent
end

-- Counts the run times of completed jobs: `runs` holds the number of jobs by bucket.
function queue_counters.count_run_times(root, queue, runs)
    local key = keys.stats(root, queue)
    for bucket, count in pairs(runs) do redis.pcall('HINCRBY', key, 'run:' .. bucket, count) end
end

-- Counts the waiting times of taken jobs: `waits` holds the number of jobs by bucket.
function queue_counters.count_wait_times(root, queue, waits)
    local key = keys.stats(root, queue)
    for bucket, count in pairs(waits) do redis.pcall('HINCRBY', key, 'wait:' .. bucket, count) end
end

return queue_counters
