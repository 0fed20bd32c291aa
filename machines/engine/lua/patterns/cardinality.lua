-- needs: calendar, pattern_keys
-- Counts distinct members of a day: a HyperLogLog sketch takes all of them, and a set as long as it is small. So a count can
-- be exact, nothing has to be converted, and a union of days is a union of sketches.
local cardinality = {}

local call = redis.call
local MAX_UNION = 10000 -- members of all sets that one union compares: some 3 ms

-- Computes the ms until the end of the retention after the day; an old day is kept for a minute.
local function compute_ttl(bucket)
    return math.max(60000, (bucket.day + 1) * calendar.DAY - bucket.now + bucket.keep)
end

-- Adds members to a day; answers how much its count grew. `bucket` is {day, part, exact, keep (ms after its end), now}. The
-- sketch is written first: a key of another type stops the call before any write.
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
        local ttl = compute_ttl(bucket)
        call('PEXPIRE', sketch, ttl)
        if is_exact then call('PEXPIRE', set, ttl) end
    end
    return grown
end

-- Lists the keys of the sets and of the sketches of all those days.
local function list_keys(root, first, last, parts)
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

-- Reads which sketches and sets exist, how many members the sets hold, and whether there is a set for every sketch.
local function read_kept(sets, sketches)
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

-- Counts the distinct members of the days from `first` to `last`. Answers the count, whether it is exact (1) or estimated
-- (0), and how many members were compared, at most `limit`.
function cardinality.count(root, first, last, parts, limit)
    local sets, sketches = list_keys(root, first, last, parts)
    if call('EXISTS', unpack(sets)) == 0 then
        local is_exact = call('EXISTS', unpack(sketches)) == 0 and 1 or 0
        return call('PFCOUNT', unpack(sketches)), is_exact, 0
    end
    local found = read_kept(sets, sketches)
    if found.is_exact and #found.sets <= 1 then return found.held, 1, 0 end
    if found.is_exact and found.held <= math.min(limit, MAX_UNION) then
        return #call('SUNION', unpack(found.sets)), 1, found.held
    end
    return call('PFCOUNT', unpack(found.sketches)), 0, 0
end

return cardinality
