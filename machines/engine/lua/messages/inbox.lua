-- needs: keys
-- Remembers which messages of other partitions were delivered here. Each sender's outbox numbers its messages upwards. Below
-- its *floor*, the oldest unsettled message for this partition, no message comes that is not settled, so only the ids from
-- the floor on are remembered, with their outcome.
local inbox = {}

local MAX_SEEN = 10000
local FAILED = 0.5 -- added to the ms of an id: the message failed for good

-- Parses the two numbers of a message id; nil for anything else.
local function parse_id(id)
    local ms, number = string.match(id or '', '^(%d+)-(%d+)$')
    return tonumber(ms), tonumber(number)
end
inbox.parse_id = parse_id

local function is_below(ms, number, other_ms, other_number)
    return ms < other_ms or ms == other_ms and number < other_number
end

-- Opens what is remembered of one sender, up to the floor that it states. Throws when that cannot be read or written.
function inbox.open(root, source, floor)
    local key, ms, number = keys.seen(root, source), parse_id(floor)
    local known_ms, known_number = parse_id(redis.call('HGET', keys.floors(root), source) or '0-0')
    redis.call('ZCARD', key)
    if is_below(known_ms, known_number, ms, number) then
        redis.call('HSET', keys.floors(root), source, floor)
        redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. ms)
    else
        ms, number = known_ms, known_number
    end
    return { key = key, ms = ms, number = number }
end

-- Answers the outcome of a message that was delivered before, 'again' or 'failed'; nil for a new one.
function inbox.find_outcome(seen, id)
    local ms, number = parse_id(id)
    if is_below(ms, number, seen.ms, seen.number) then return 'again' end
    local score = redis.call('ZSCORE', seen.key, id)
    if not score then return nil end
    return tonumber(score) == ms and 'again' or 'failed'
end

function inbox.remember(seen, id, failed)
    redis.call('ZADD', seen.key, parse_id(id) + (failed and FAILED or 0), id)
end

-- Tells whether too many ids are remembered: they pile up behind a message that cannot be settled.
function inbox.is_full(seen)
    return redis.call('ZCARD', seen.key) >= MAX_SEEN
end

return inbox
