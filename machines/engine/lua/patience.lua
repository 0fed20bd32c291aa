-- needs: stopwatch
-- How long one step may hold the server. Every loop of a step asks here on each round; the watch is read now and then.
local patience = {}

local LONGEST_MS = 500
local EVERY = 4 -- rounds

-- Throws what no block of actions catches, once a step has taken too long.
function patience.ask(ctx)
    local rounds = (ctx.rounds or 0) + 1
    ctx.rounds = rounds
    if rounds % EVERY ~= 0 then return end
    if not ctx.too_long then
        ctx.too_long = stopwatch.start(LONGEST_MS)
    elseif ctx.too_long() then
        error({ sb = 'the step takes longer than ' .. LONGEST_MS .. ' ms: too much work for one event', hard = true })
    end
end

return patience
