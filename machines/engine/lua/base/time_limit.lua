-- How long a call has been at work. The server does nothing else meanwhile, so that calls which handle many things stop
-- in time and leave the rest to the next one.
local time_limit = {}

local system = rawget(_G, 'os') -- not there on Redis 7.0; its TIME, unlike that of later servers, goes on within a call

local function seconds()
    if system then return system.clock() end
    local time = redis.call('TIME')
    return time[1] + time[2] / 1e6
end

-- A function that tells whether more than `ms` have passed since.
function time_limit.start(ms)
    local began = seconds()
    return function() return (seconds() - began) * 1000 > ms end
end

return time_limit
