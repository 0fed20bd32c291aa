-- How long one step may hold the server. Every loop of a step asks here on each round; the clock is read now and then.
local patience = {}

local LONGEST_MS = 1000
local EVERY = 4 -- rounds

local function time_of_day()
    local time = redis.call('TIME')
    return time[1] * 1000 + time[2] / 1000
end

-- ms. Newer servers stop TIME while a function runs, and have a clock of the processor's time; 7.0 has none, and its TIME
-- goes on.
local has_clock, processor = pcall(function() return os.clock end)
local clock = has_clock and processor and function() return processor() * 1000 end or time_of_day

-- Throws what no block of actions catches, once a step has taken too long.
function patience.ask(ctx)
    local rounds = (ctx.rounds or 0) + 1
    ctx.rounds = rounds
    if rounds % EVERY ~= 0 then return end
    local now = clock()
    if not ctx.began then
        ctx.began = now
    elseif now - ctx.began > LONGEST_MS then
        error({ sb = 'the step takes longer than ' .. LONGEST_MS .. ' ms: too much work for one event', hard = true })
    end
end

return patience
