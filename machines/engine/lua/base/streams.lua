-- A stream that consumer groups read: which groups there are, and what may go from its beginning.
local streams = {}

local LAST = '18446744073709551615' -- the greatest either part of an id can be
local ALL = LAST .. '-' .. LAST
local ROUNDS, PART = 16, 128 -- entries are looked at one by one in so many rounds of so many at most
streams.MOST_GROUPS = 64

local function less(a, b)
    if #a ~= #b then return #a < #b end
    return a < b
end

-- Ids as the server writes them: no zeros in front, so that the longer part is the greater one.
local function before(a, b)
    local a_ms, a_number = string.match(a, '^(%d+)-(%d+)$')
    local b_ms, b_number = string.match(b, '^(%d+)-(%d+)$')
    if a_ms ~= b_ms then return less(a_ms, b_ms) end
    return less(a_number, b_number)
end

-- The id that follows, where it can be counted exactly; else the same.
local function after(id)
    local ms, number = string.match(id, '^(%d+)-(%d+)$')
    return #number < 16 and string.format('%s-%.0f', ms, tonumber(number) + 1) or id
end

-- Is it an id that the server would take?
function streams.is_id(text)
    if text and #text < 20 then return string.find(text, '^%d+-%d+$') ~= nil end
    local ms, number = string.match(text or '', '^(%d+)-(%d+)$')
    if not ms or #ms > 20 or #number > 20 then return false end
    return not (#ms == 20 and ms > LAST) and not (#number == 20 and number > LAST)
end

-- Does it fit as the name of a group, or of a reader?
function streams.is_name(text)
    return text ~= nil and #text >= 1 and #text <= 512
end

local function pairs_of(flat)
    local found = {}
    for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
    return found
end

-- {name, pending, consumers, last, read (false where it is not known), lag (the same)} of each.
function streams.groups(key)
    local found = {}
    if redis.call('EXISTS', key) == 0 then return found end
    for i, row in ipairs(redis.call('XINFO', 'GROUPS', key)) do
        local told = pairs_of(row)
        found[i] = { name = told.name, pending = told.pending, consumers = told.consumers,
            last = told['last-delivered-id'], read = told['entries-read'], lag = told.lag }
    end
    return found
end

function streams.group(key, name)
    for _, group in ipairs(streams.groups(key)) do
        if group.name == name then return group end
    end
    return nil
end

-- How many entries it ever got, and how many of those are gone.
function streams.ever(key)
    if redis.call('EXISTS', key) == 0 then return 0, 0 end
    local told = pairs_of(redis.call('XINFO', 'STREAM', key))
    return told['entries-added'], told['entries-added'] - told.length
end

-- The first entry that was given to a reader of the group and not acknowledged.
function streams.first_pending(key, group)
    return group.pending > 0 and redis.call('XPENDING', key, group.name, '-', '+', 1)[1] or nil
end

-- The first id that a group still needs, and whose it is; past the end where none needs any.
function streams.floor(key)
    local floor, holder = ALL, ''
    for _, group in ipairs(streams.groups(key)) do
        local pending = streams.first_pending(key, group)
        local needed = pending and pending[1] or after(group.last)
        if before(needed, floor) then floor, holder = needed, group.name end
    end
    return floor, holder
end

-- Lets the oldest go until `most` are left, a node of the stream at a time, but none that a group still needs; beyond
-- `hard` those, too.
function streams.trim(key, most, hard)
    local length = redis.call('XLEN', key)
    if length <= most then return end
    redis.call('XTRIM', key, 'MINID', '~', streams.floor(key), 'LIMIT', length - most)
    if hard and length > hard and redis.call('XLEN', key) > hard then redis.call('XTRIM', key, 'MAXLEN', '~', hard) end
end

-- The oldest that may go, until fewer than `most` are left or a round is over. Does it make sense to go on?
local function shorten(key, most, floor)
    local excess = math.min(redis.call('XLEN', key) - most + 1, PART)
    if excess < 1 then return false end
    local entries, gone = redis.call('XRANGE', key, '-', '+', 'COUNT', excess + 1), 0
    while gone < excess and entries[gone + 1] and before(entries[gone + 1][1], floor) do gone = gone + 1 end
    if gone == 0 then return false end
    if entries[gone + 1] then
        redis.call('XTRIM', key, 'MINID', entries[gone + 1][1])
    else
        redis.call('XTRIM', key, 'MAXLEN', 0)
    end
    return gone == excess
end

-- Is there room for one more among `most`, once what may go has gone? Else also the group that needs the oldest.
function streams.room(key, most)
    local floor, holder = streams.floor(key)
    local spare = math.max(redis.call('XLEN', key) - most + 1, math.floor(most / 10))
    if spare > 1 then redis.call('XTRIM', key, 'MINID', '~', floor, 'LIMIT', spare) end
    for _ = 1, ROUNDS do
        if not shorten(key, most, floor) then break end
    end
    return redis.call('XLEN', key) < most, holder
end

return streams
