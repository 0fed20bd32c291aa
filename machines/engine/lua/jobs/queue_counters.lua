-- needs: keys
-- What has happened on a queue, as counters that only grow: rates come out of differences. One hash for each queue, one
-- increment for what one job does. Statistics are no part of a step: what lies in their way is no reason to fail.
local queue_counters = {}

local frexp = math.frexp

function queue_counters.count(root, queue, what, by)
    redis.pcall('HINCRBY', keys.stats(root, queue), what, by or 1)
end

-- Times are counted by their order of magnitude: 0 is below 1 ms, and n stands for 2^(n-1) ms up to 2^n ms.
function queue_counters.bucket(ms)
    if ms < 1 then return 0 end
    local _, exponent = frexp(ms)
    return exponent
end

-- How long jobs ran that were completed: `runs` holds how many there are of each magnitude.
function queue_counters.ran(root, queue, runs)
    local key = keys.stats(root, queue)
    for bucket, count in pairs(runs) do redis.pcall('HINCRBY', key, 'run:' .. bucket, count) end
end

-- How long jobs waited that were handed out: `waits` holds how many there are of each magnitude.
function queue_counters.waited(root, queue, waits)
    local key = keys.stats(root, queue)
    for bucket, count in pairs(waits) do redis.pcall('HINCRBY', key, 'wait:' .. bucket, count) end
end

return queue_counters
