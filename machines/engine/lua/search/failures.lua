-- needs: data_indexes, keys, strings
-- Current failures of instances: dead jobs and timers whose step failed. A hash has them, instance -> JSON of cause ->
-- [kind, text]; an index leads to the instance by the beginning of either. Written only when a failure begins or ends. A
-- failure that cannot be written does not fail the call.
local failures = {}

local FIELD = 'instance.error'
local MAX_TEXT = 200 -- bytes of a kind and of a text
local MAX_CAUSES = 50
local sub = string.sub

failures.FIELD = FIELD

-- Reads cause -> {kind, text}; a cause is a job's id or a timer's member.
local function read_causes(root, id)
    local text = redis.pcall('HGET', keys.wrong(root), id)
    local ok, found = pcall(cjson.decode, type(text) == 'string' and text or '{}')
    return ok and type(found) == 'table' and found or {}
end

local function make_entries(causes, id)
    local found = {}
    for _, words in pairs(causes) do
        for _, word in ipairs(words) do
            if word ~= '' then found[data_indexes.make_entry(word, id)] = true end
        end
    end
    return found
end

local function write_causes(root, id, before, causes)
    local key, index = keys.wrong(root), keys.lookup(root, FIELD)
    local after = make_entries(causes, id)
    for entry in pairs(after) do
        if not before[entry] then redis.pcall('ZADD', index, 0, entry) end
    end
    for entry in pairs(before) do
        if not after[entry] then redis.pcall('ZREM', index, entry) end
    end
    if next(causes) then redis.pcall('HSET', key, id, cjson.encode(causes)) else redis.pcall('HDEL', key, id) end
end

local function count_causes(causes)
    local count = 0
    for _ in pairs(causes) do count = count + 1 end
    return count
end

-- Notes `cause` as a failure of the instance. The first MAX_CAUSES causes are kept.
function failures.note(root, id, cause, kind, text)
    if (id or '') == '' or redis.pcall('EXISTS', keys.instance(root, id)) ~= 1 then return end
    local causes = read_causes(root, id)
    if not causes[cause] and count_causes(causes) >= MAX_CAUSES then return end
    local before = make_entries(causes, id)
    causes[cause] = { strings.cut_head(kind or '', MAX_TEXT), strings.cut_head(text or '', MAX_TEXT) }
    write_causes(root, id, before, causes)
end

-- Clears a cause.
function failures.clear(root, id, cause)
    if (id or '') == '' then return end
    local causes = read_causes(root, id)
    if not causes[cause] then return end
    local before = make_entries(causes, id)
    causes[cause] = nil
    write_causes(root, id, before, causes)
end

-- Lists the causes of an instance: ids of dead jobs, members of timers.
function failures.list_causes(root, id)
    local found = {}
    for cause in pairs(read_causes(root, id)) do found[#found + 1] = cause end
    return found
end

-- Lists the kinds and texts of an instance's failures.
function failures.list_words(root, id)
    local found = {}
    for _, words in pairs(read_causes(root, id)) do
        for _, word in ipairs(words) do found[#found + 1] = word end
    end
    return found
end

-- Removes all failures of an instance.
function failures.remove_instance(root, id)
    local causes = read_causes(root, id)
    if next(causes) then write_causes(root, id, make_entries(causes, id), {}) end
end

-- Answers the lowest entry of the instance whose kind or text has the prefix: of several entries that lead to one instance,
-- only this one counts in a search. nil when there is none.
function failures.find_first(root, id, prefix)
    local lowest
    for _, words in pairs(read_causes(root, id)) do
        for _, word in ipairs(words) do
            if word ~= '' and sub(word, 1, #prefix) == prefix then
                local entry = data_indexes.make_entry(word, id)
                if not lowest or strings.is_before(entry, lowest) then lowest = entry end
            end
        end
    end
    return lowest
end

return failures
