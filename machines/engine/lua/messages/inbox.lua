-- needs: keys
-- Which messages of other partitions came to this one already. Each sender's outbox numbers its messages upwards; below its
-- *floor*, the oldest message for this partition that is not settled, nothing comes that has not been dealt with, so
-- that only the ids from there on are remembered, with how they ended.
local inbox = {}

local MAX_SEEN = 10000
local FAILED = 0.5 -- added to the ms an id begins with: it could not be applied, and that is final

-- The two numbers of a message's id; nil where it is none.
local function parts(id)
    local ms, number = string.match(id or '', '^(%d+)-(%d+)$')
    return tonumber(ms), tonumber(number)
end
inbox.parts = parts

local function below(ms, number, other_ms, other_number)
    return ms < other_ms or ms == other_ms and number < other_number
end

-- What is remembered of one sender, brought up to the floor it states. Throws where that cannot be read or written.
function inbox.open(root, source, floor)
    local key, ms, number = keys.seen(root, source), parts(floor)
    local known_ms, known_number = parts(redis.call('HGET', keys.floors(root), source) or '0-0')
    redis.call('ZCARD', key)
    if below(known_ms, known_number, ms, number) then
        redis.call('HSET', keys.floors(root), source, floor)
        redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. ms)
    else
        ms, number = known_ms, known_number
    end
    return { key = key, ms = ms, number = number }
end

-- How a message ended that came before, 'again' or 'failed'; nil for a new one.
function inbox.verdict(sender, id)
    local ms, number = parts(id)
    if below(ms, number, sender.ms, sender.number) then return 'again' end
    local score = redis.call('ZSCORE', sender.key, id)
    if not score then return nil end
    return tonumber(score) == ms and 'again' or 'failed'
end

function inbox.remember(sender, id, failed)
    redis.call('ZADD', sender.key, parts(id) + (failed and FAILED or 0), id)
end

-- While one message cannot be dealt with, the ids of all that follow it pile up.
function inbox.full(sender)
    return redis.call('ZCARD', sender.key) >= MAX_SEEN
end

return inbox
