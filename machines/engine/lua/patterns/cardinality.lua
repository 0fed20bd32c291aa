-- needs: calendar, pattern_keys
-- How many different members came on a day: a sketch that takes every one of them, and beside it a set for as long as that
-- is small. So a count can be exact, nothing has to be turned into anything, and a union of days is a union of sketches.
local cardinality = {}

local call = redis.call
local MOST_IN_SETS = 10000 -- members of all sets that a union compares one by one: some 3 ms

-- ms until the day has been over for as long as it is kept; one that has long been stays for a minute.
local function left(bucket)
    return math.max(60000, (bucket.day + 1) * calendar.DAY - bucket.now + bucket.keep)
end

-- `bucket` is {day, part, exact, keep (ms after its end), now}. Answers by how much the count of the day grew. The sketch is
-- written first: where a key of another type is in the way, nothing is.
function cardinality.add(root, bucket, members)
    local set = pattern_keys.distinct_set(root, bucket.day, bucket.part)
    local sketch = pattern_keys.distinct_sketch(root, bucket.day, bucket.part)
    local size = call('SCARD', set)
    local before = size > 0 and size or call('PFCOUNT', sketch)
    local is_exact = size > 0 or before == 0
    local grown = call('PFADD', sketch, unpack(members))
    local changed = grown == 1
    if is_exact then
        grown = call('SADD', set, unpack(members))
        if size + grown > bucket.exact then call('DEL', set) end
    elseif changed then
        grown = math.max(0, call('PFCOUNT', sketch) - before)
    end
    if changed or grown > 0 then
        local ttl = left(bucket)
        call('PEXPIRE', sketch, ttl)
        if is_exact then call('PEXPIRE', set, ttl) end
    end
    return grown
end

-- The keys of all those days: of their sets, and of their sketches.
local function keys_of(root, first, last, parts)
    local sets, sketches, n = {}, {}, 0
    for day = first, last do
        local text = string.format('%d', day)
        for i = 1, #parts do
            n = n + 1
            sets[n] = pattern_keys.distinct_set(root, text, parts[i])
            sketches[n] = pattern_keys.distinct_sketch(root, text, parts[i])
        end
    end
    return sets, sketches
end

-- What is kept of them: the sketches, the sets, how many members those hold in all, and whether there is a set for every
-- sketch.
local function kept(sets, sketches)
    local found = { sketches = {}, sets = {}, held = 0, is_exact = true }
    for i, set in ipairs(sets) do
        local size = call('SCARD', set)
        if size > 0 then
            found.sets[#found.sets + 1], found.held = set, found.held + size
            found.sketches[#found.sketches + 1] = sketches[i]
        elseif call('EXISTS', sketches[i]) == 1 then
            found.sketches[#found.sketches + 1], found.is_exact = sketches[i], false
        end
    end
    return found
end

-- How many different ones came on any of the days from `first` to `last`, whether that is exact (1) or by sketches (0), and
-- how many members were compared for it, of `most` at most.
function cardinality.count(root, first, last, parts, most)
    local sets, sketches = keys_of(root, first, last, parts)
    if call('EXISTS', unpack(sets)) == 0 then
        local is_exact = call('EXISTS', unpack(sketches)) == 0 and 1 or 0
        return call('PFCOUNT', unpack(sketches)), is_exact, 0
    end
    local found = kept(sets, sketches)
    if found.is_exact and #found.sets <= 1 then return found.held, 1, 0 end
    if found.is_exact and found.held <= math.min(most, MOST_IN_SETS) then
        return #call('SUNION', unpack(found.sets)), 1, found.held
    end
    return call('PFCOUNT', unpack(found.sketches)), 0, 0
end

return cardinality
