-- needs: arguments, pattern_keys, replies, strings
-- sb_buffer_add: adds writes to the open entries of their entities and moves marks with them; all of it, or nothing.
-- KEYS:    1 root of one part of a write buffer
-- ARGV:    1 now (ms, or '') · 2 most entries that may wait · 3 prefix of the ids of entries · 4 number of marks · 5 then
--          for each mark: name, SHA-1 of the text seen ('' = none), its new text; then for each of at most 1000 writes:
--          entity, number of counters, number of fields, (counter, what to add), (field, JSON)
-- Returns: {OK, entities that were not waiting before} · {CONFLICT, a mark that has moved} · {FULL, entries that wait} ·
--          {OVERFLOW, why} · {FAULT, why} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(W + N * log(M)) for W values of N entities, and M that wait
local MAX_EXACT = 2 ^ 53 - 1
local MAX_WRITES, MAX_MARKS, MAX_NAMES, MAX_LIMIT = 1000, 1000, 20000, 10000000
local MAX_KEY, MAX_VALUE, MAX_MARK, MAX_SIZE = 2048, 65536, 1048576, 1048576 -- bytes
local DIGEST = '^' .. string.rep('%x', 40) .. '$'
local ENTRY_FIELD = '_' -- field of an open entry: its id, the ms of its first write, the number of its names, and of its bytes

local function is_text(value, limit)
    return value and #value > 0 and #value <= limit
end

local function parse_exact(value)
    local number = tonumber(value or '')
    return number and number % 1 == 0 and number >= -MAX_EXACT and number <= MAX_EXACT and number or nil
end

local function read_marks(ARGV, at, count)
    local marks = {}
    for i = 1, count do
        local name, seen, new = ARGV[at], ARGV[at + 1], ARGV[at + 2]
        arguments.need(is_text(name, MAX_KEY), 'a mark has a name of 1 to ' .. MAX_KEY .. ' bytes')
        arguments.need(seen == '' or string.match(seen or '', DIGEST), 'a mark was seen as a SHA-1')
        arguments.need(is_text(new, MAX_MARK), 'a mark is a text of 1 to ' .. MAX_MARK .. ' bytes')
        marks[i], at = { name = name, seen = seen, new = new }, at + 3
    end
    return marks, at
end

local function read_write(ARGV, at)
    local write = { entity = ARGV[at], names = {}, added = {}, values = {} }
    arguments.need(is_text(write.entity, MAX_KEY), 'an entity has a name of 1 to ' .. MAX_KEY .. ' bytes')
    local counters = arguments.parse_count(ARGV[at + 1], 0, MAX_NAMES)
    local fields = arguments.parse_count(ARGV[at + 2], 0, MAX_NAMES)
    local fits = counters and fields and counters + fields >= 1 and counters + fields <= MAX_NAMES
    arguments.need(fits, 'a write has 1 to ' .. MAX_NAMES .. ' counters and fields')
    at = at + 3
    for i = 1, counters + fields do
        local name, value = ARGV[at], ARGV[at + 1]
        arguments.need(is_text(name, MAX_KEY), 'a counter or field has a name of 1 to ' .. MAX_KEY .. ' bytes')
        if i <= counters then
            write.names[i], write.added[i] = 'c:' .. name, parse_exact(value)
            arguments.need(write.added[i], 'what is added is a whole number below 2^53')
        else
            arguments.need(is_text(value, MAX_VALUE), 'a field has 1 to ' .. MAX_VALUE .. ' bytes of JSON')
            write.names[i], write.values[i] = 'f:' .. name, value
        end
        at = at + 2
    end
    return write, at
end

local function parse(ARGV)
    local call = { writes = {}, prefix = ARGV[3], now = (arguments.need_now(ARGV[1])) }
    call.most = arguments.need_count('how many may wait', ARGV[2], 1, MAX_LIMIT)
    arguments.need(is_text(call.prefix, 100), 'ids begin with 1 to 100 bytes')
    arguments.need(strings.is_valid(table.concat(ARGV, '\0')), 'every text is UTF-8')
    local count, next_at = arguments.need_count('how many marks', ARGV[4], 0, MAX_MARKS), 5
    call.marks, next_at = read_marks(ARGV, next_at, count)
    while next_at <= #ARGV do
        arguments.need(#call.writes < MAX_WRITES, 'one call takes ' .. MAX_WRITES .. ' writes at most')
        call.writes[#call.writes + 1], next_at = read_write(ARGV, next_at)
    end
    arguments.need(#call.writes + count > 0, 'there is nothing to write')
    return call
end

local function find_moved(root, marks)
    for _, mark in ipairs(marks) do
        local held = redis.call('HGET', pattern_keys.buffer_marks(root), mark.name)
        if (held and redis.sha1hex(held) or '') ~= mark.seen then return mark.name end
    end
end

-- Loads what the entry holds of the names that are not loaded yet, some hundreds at a time; with the first its own field.
local function load_names(entry, names)
    local missing = entry.known and {} or { ENTRY_FIELD }
    for i, name in ipairs(names) do
        if entry.held[name] == nil then missing[#missing + 1] = name end
        if #missing > 500 or i == #names and missing[1] then
            local values = redis.call('HMGET', entry.key, unpack(missing))
            for at, asked in ipairs(missing) do entry.held[asked] = values[at] end
            missing = {}
        end
    end
end

-- Opens the entity's entry, one for all writes to it.
local function open_entry(found, root, write)
    local entry = found[write.entity]
    if not entry then
        entry = { key = pattern_keys.buffer_open(root, write.entity), held = {}, new = {}, names = 0, size = 0 }
        found[write.entity], found[#found + 1] = entry, write.entity
    end
    load_names(entry, write.names)
    if not entry.known then
        local facts = entry.held[ENTRY_FIELD]
        entry.known, entry.old = true, facts and true
        if facts then entry.id, entry.names, entry.size = string.match(facts, '^(%S+ %d+) (%d+) (%d+)$') end
        entry.foreign = not entry.id and (facts or redis.call('HLEN', entry.key) > 0)
        entry.names, entry.size = tonumber(entry.names), tonumber(entry.size)
    end
    return entry
end

local function set_value(entry, name, value)
    local held = entry.held[name]
    if not held then entry.names = entry.names + 1 end
    entry.size = entry.size + #value - (held and #held or -#name)
    entry.held[name], entry.new[name] = value, value
end

-- Applies the write to the entry in memory; or answers a status and why the entry cannot take it.
local function apply_write(entry, write, now)
    if entry.foreign then return replies.FAULT, 'something foreign is in its place' end
    for i, name in ipairs(write.names) do
        local held, added = entry.held[name], write.added[i]
        if added then
            local before = held and parse_exact(held) or not held and 0
            if not before then return replies.FAULT, 'no number is in the place of ' .. name end
            if math.abs(before + added) > MAX_EXACT then
                return replies.OVERFLOW, string.sub(name, 3) .. ' would reach 2^53, below which it is counted exactly'
            end
            set_value(entry, name, string.format('%d', before + added))
        elseif now >= (tonumber(held and string.match(held, '^%d+') or 0) or 0) then
            set_value(entry, name, string.format('%d ', now) .. write.values[i])
        end
    end
    if entry.names > MAX_NAMES then return replies.OVERFLOW, 'an entry holds ' .. MAX_NAMES .. ' names at most' end
    if entry.size > MAX_SIZE then return replies.OVERFLOW, 'an entry holds ' .. MAX_SIZE .. ' bytes at most' end
end

local function write_entries(root, found, opened, call)
    local seq = opened > 0 and redis.call('INCRBY', pattern_keys.buffer_seq(root), opened) - opened
    local now, pending = string.format('%d', call.now), {}
    for _, entity in ipairs(found) do
        local entry = found[entity]
        if not entry.old then
            seq = seq + 1
            local digest = string.sub(redis.sha1hex(entity), 1, 12)
            entry.id = string.format('%s-%s-%d-%s %s', call.prefix, now, seq, digest, now)
            pending[#pending + 1], pending[#pending + 2] = now, entity
        end
        local words = { ENTRY_FIELD, string.format('%s %d %d', entry.id, entry.names, entry.size) }
        for name, value in pairs(entry.new) do
            words[#words + 1], words[#words + 2] = name, value
            if #words >= 1000 then
                redis.call('HSET', entry.key, unpack(words))
                words = {}
            end
        end
        if words[1] then redis.call('HSET', entry.key, unpack(words)) end
    end
    if pending[1] then redis.call('ZADD', pattern_keys.buffer_pending(root), unpack(pending)) end
    for _, mark in ipairs(call.marks) do redis.call('HSET', pattern_keys.buffer_marks(root), mark.name, mark.new) end
end

return function(KEYS, ARGV)
    local root, call = KEYS[1], parse(ARGV)
    local other = find_moved(root, call.marks)
    if other then return { replies.CONFLICT, other } end
    local found, opened = {}, 0
    for _, write in ipairs(call.writes) do
        local status, why = apply_write(open_entry(found, root, write), write, call.now)
        if status then return { status, write.entity .. ': ' .. why } end
    end
    for _, entity in ipairs(found) do
        if not found[entity].old then opened = opened + 1 end
    end
    if opened > 0 then
        local waits = redis.call('ZCARD', pattern_keys.buffer_pending(root))
            + (tonumber(redis.call('GET', pattern_keys.buffer_held(root)) or 0) or 0)
        if waits + opened > call.most then return { replies.FULL, waits } end
    end
    write_entries(root, found, opened, call)
    return { replies.OK, opened }
end
