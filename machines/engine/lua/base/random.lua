-- Random values that nobody can predict, from the machine's secret: redis.sha1hex(secret, instance, version, time, draw).
-- The server's own generator starts from a fixed seed.
local random = {}

local LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

local function draw_digest(ctx)
    ctx.draws = (ctx.draws or 0) + 1
    return redis.sha1hex(table.concat({ ctx.program.secret, ctx.id, ctx.revision, ctx.now, ctx.draws }, '\n'))
end

-- Makes a token of `length` upper-case letters and digits. Four hex digits for each keep the bias below 1 in 4000.
function random.make_token(ctx, length)
    local letters, hex = {}, ''
    for i = 1, length do
        if hex == '' then hex = draw_digest(ctx) end
        local pick = tonumber(string.sub(hex, 1, 4), 16) % #LETTERS + 1
        letters[i], hex = string.sub(LETTERS, pick, pick), string.sub(hex, 5)
    end
    return table.concat(letters)
end

-- Makes a number in [0, 1).
function random.make_number(ctx)
    return tonumber(string.sub(draw_digest(ctx), 1, 12), 16) / 2 ^ 48
end

return random
