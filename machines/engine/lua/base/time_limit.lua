-- Measures how long a call runs. The server does nothing else meanwhile, so calls that handle many things stop in time and
-- leave the rest to the next call.
local time_limit = {}

local SLICE_MS = 2 -- of a call that handles many things; the last of them, the reply and the collector come on top
-- The collector goes half as fast as memory is used; Lua's own value is twice as fast. A server has it work after every 50 calls:
-- a quarter as long then, and small calls take a twentieth less. A pass still ends: the bytes of an object, most of them 40 and
-- more, count for more than the 10 units of sweeping it.
local COLLECTOR_SPEED = 50

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
