-- How long one step may hold the server. Every loop of a step asks here on each round; the clock is read now and then.
local patience = {}

local LONGEST_MS = 1000
local EVERY = 16 -- rounds

local function clock()
    local time = redis.call('TIME')
    return time[1] * 1000 + time[2] / 1000
end

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
