-- Streams with consumer groups: lists the groups and trims entries that no group needs.
local streams = {}

local MAX_PART = '18446744073709551615' -- the largest value of either part of an id
local MAX_ID = MAX_PART .. '-' .. MAX_PART
local TRIM_ROUNDS, TRIM_SIZE = 16, 128 -- rounds of a trim, entries looked at in each
streams.MOST_GROUPS = 64

local function is_less(a, b)
    if #a ~= #b then return #a < #b end
    return a < b
end

-- Tells whether one id is before another. The server writes no leading zeros, so the longer part is the larger number.
local function is_before(a, b)
    local a_ms, a_number = string.match(a, '^(%d+)-(%d+)$')
    local b_ms, b_number = string.match(b, '^(%d+)-(%d+)$')
    if a_ms ~= b_ms then return is_less(a_ms, b_ms) end
    return is_less(a_number, b_number)
end

-- Answers the following id where it can be counted exactly, else the same id.
local function next_id(id)
    local ms, number = string.match(id, '^(%d+)-(%d+)$')
    return #number < 16 and string.format('%s-%.0f', ms, tonumber(number) + 1) or id
end

-- Tells whether the server would accept the text as an id.
function streams.is_id(text)
    if text and #text < 20 then return string.find(text, '^%d+-%d+$') ~= nil end
    local ms, number = string.match(text or '', '^(%d+)-(%d+)$')
    if not ms or #ms > 20 or #number > 20 then return false end
    return not (#ms == 20 and ms > MAX_PART) and not (#number == 20 and number > MAX_PART)
end

-- Tells whether the text is valid as the name of a group or of a consumer.
function streams.is_name(text)
    return text ~= nil and #text >= 1 and #text <= 512
end

local function to_table(flat)
    local found = {}
    for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
    return found
end

-- Lists the groups: {name, pending, consumers, last, read, lag}; read and lag are false where the server does not know them.
function streams.list_groups(key)
    local found = {}
    if redis.call('EXISTS', key) == 0 then return found end
    for i, row in ipairs(redis.call('XINFO', 'GROUPS', key)) do
        local info = to_table(row)
        found[i] = { name = info.name, pending = info.pending, consumers = info.consumers,
            last = info['last-delivered-id'], read = info['entries-read'], lag = info.lag }
    end
    return found
end

function streams.find_group(key, name)
    for _, group in ipairs(streams.list_groups(key)) do
        if group.name == name then return group end
    end
    return nil
end

-- Answers how many entries were ever added, and how many of them were deleted.
function streams.count_added(key)
    if redis.call('EXISTS', key) == 0 then return 0, 0 end
    local info = to_table(redis.call('XINFO', 'STREAM', key))
    return info['entries-added'], info['entries-added'] - info.length
end

-- Answers the first entry that is delivered to a consumer of the group and not acknowledged.
function streams.find_first_pending(key, group)
    return group.pending > 0 and redis.call('XPENDING', key, group.name, '-', '+', 1)[1] or nil
end

-- Answers the first id that a group still needs, and that group; an id past the end when no group needs any.
function streams.find_floor(key)
    local floor, owner = MAX_ID, ''
    for _, group in ipairs(streams.list_groups(key)) do
        local pending = streams.find_first_pending(key, group)
        local needed = pending and pending[1] or next_id(group.last)
        if is_before(needed, floor) then floor, owner = needed, group.name end
    end
    return floor, owner
end

-- Trims the oldest entries until about `most` are left, except those that a group still needs; beyond `hard` also these.
function streams.trim(key, most, hard)
    local length = redis.call('XLEN', key)
    if length <= most then return end
    redis.call('XTRIM', key, 'MINID', '~', streams.find_floor(key), 'LIMIT', length - most)
    if hard and length > hard and redis.call('XLEN', key) > hard then redis.call('XTRIM', key, 'MAXLEN', '~', hard) end
end

-- Trims entries before an id that no group needs, whole nodes of the stream at a time; answers how many.
function streams.trim_before(key, id, most)
    local floor = streams.find_floor(key)
    return redis.call('XTRIM', key, 'MINID', '~', is_before(id, floor) and id or floor, 'LIMIT', most)
end

-- Trims one round of entries before the floor, until fewer than `most` are left. Tells whether another round may help.
local function trim_round(key, most, floor)
    local excess = math.min(redis.call('XLEN', key) - most + 1, TRIM_SIZE)
    if excess < 1 then return false end
    local entries, gone = redis.call('XRANGE', key, '-', '+', 'COUNT', excess + 1), 0
    while gone < excess and entries[gone + 1] and is_before(entries[gone + 1][1], floor) do gone = gone + 1 end
    if gone == 0 then return false end
    if entries[gone + 1] then
        redis.call('XTRIM', key, 'MINID', entries[gone + 1][1])
    else
        redis.call('XTRIM', key, 'MAXLEN', 0)
    end
    return gone == excess
end

-- Tells whether there is room for one more entry among `most`, after a trim; if not, also which group needs the oldest
-- entry.
function streams.make_room(key, most)
    local floor, owner = streams.find_floor(key)
    local spare = math.max(redis.call('XLEN', key) - most + 1, math.floor(most / 10))
    if spare > 1 then redis.call('XTRIM', key, 'MINID', '~', floor, 'LIMIT', spare) end
    for _ = 1, TRIM_ROUNDS do
        if not trim_round(key, most, floor) then break end
    end
    return redis.call('XLEN', key) < most, owner
end

return streams
