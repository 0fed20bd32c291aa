-- Measures how long a call runs. The server does nothing else meanwhile, so calls that handle many things stop in time and
-- leave the rest to the next call.
local time_limit = {}

local os_library = rawget(_G, 'os') -- absent on Redis 7.0, whose TIME advances within a call, unlike that of later servers

local function seconds()
    if os_library then return os_library.clock() end
    local time = redis.call('TIME')
    return time[1] + time[2] / 1e6
end

-- Answers a function that tells how many ms have passed since.
function time_limit.measure()
    local began = seconds()
    return function() return (seconds() - began) * 1000 end
end

-- Answers a function that tells whether more than `ms` have passed since.
function time_limit.start(ms)
    local began = seconds()
    return function() return (seconds() - began) * 1000 > ms end
end

return time_limit
