-- needs: jobs
-- The delay before the next attempt of a failed job.
local retry_delay = {}

local MAX_BACKOFF = 3600000 -- ms

-- Computes the delay before the next attempt. Exponential: backoff, twice, four times that, an hour at most; a longer
-- backoff stays as it is. Jitter takes a random value between half of it and all, so that jobs that failed together do not
-- all return together.
function retry_delay.compute(job, row)
    local backoff = tonumber(row.backoff or jobs.DEFAULT.backoff)
    local wait = math.min(backoff * 2 ^ (tonumber(row.attempt) - 1), math.max(MAX_BACKOFF, backoff))
    if row.jitter == '0' then return wait end
    local chance = tonumber(string.sub(redis.sha1hex(job .. ' ' .. row.token), 1, 8), 16) / 2 ^ 32
    return math.ceil(wait * (1 - chance / 2))
end

return retry_delay
