-- Unguessable values from the machine's secret: redis.sha1hex(secret, instance, version, time, draw).
-- The server's own random generator starts from a fixed seed, so a token drawn from it could be predicted.
local random = {}

local LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

local function digest(ctx)
    ctx.draws = (ctx.draws or 0) + 1
    return redis.sha1hex(table.concat({ ctx.program.secret, ctx.id, ctx.version, ctx.now, ctx.draws }, '\n'))
end

-- `length` upper-case letters and digits. Four hex digits to a character keep the bias below 1 in 4000.
function random.token(ctx, length)
    local letters, hex = {}, ''
    for i = 1, length do
        if hex == '' then hex = digest(ctx) end
        local pick = tonumber(string.sub(hex, 1, 4), 16) % #LETTERS + 1
        letters[i], hex = string.sub(LETTERS, pick, pick), string.sub(hex, 5)
    end
    return table.concat(letters)
end

-- A number in [0, 1).
function random.number(ctx)
    return tonumber(string.sub(digest(ctx), 1, 12), 16) / 2 ^ 48
end

return random
