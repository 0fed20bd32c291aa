-- Measures how long a call runs. The server does nothing else meanwhile, so calls that handle many things stop in time and
-- leave the rest to the next call.
local time_limit = {}

local SLICE_MS = 2 -- of a call that handles many things; the last of them, the reply and the collector come on top
-- The collector goes as fast as memory is used, not twice as fast: what the server has it do after a call takes half as long.
local COLLECTOR_SPEED = 100

collectgarbage('setstepmul', COLLECTOR_SPEED)

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

-- Answers a function that tells whether the time of a slice, or of some `slices`, has passed since.
function time_limit.start(slices)
    local began, most = seconds(), SLICE_MS * (slices or 1)
    return function() return (seconds() - began) * 1000 > most end
end

return time_limit
