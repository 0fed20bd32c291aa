-- needs: data_indexes, keys, strings
-- What is wrong with instances now: their dead jobs, and timers that could not be carried out. A hash says it, instance -> JSON
-- of cause -> [kind, text]; an index leads to the instance by the beginning of either. Written only where something goes wrong
-- or is put right again; what lies in its way is no reason to fail.
local failures = {}

local FIELD = 'instance.error'
local MAX_TEXT = 200 -- bytes of a kind, of a text
local MAX_CAUSES = 50
local sub = string.sub

failures.FIELD = FIELD

-- Cause -> {kind, text}; a job's id, or what stands for a timer.
local function read(root, id)
    local text = redis.pcall('HGET', keys.wrong(root), id)
    local ok, found = pcall(cjson.decode, type(text) == 'string' and text or '{}')
    return ok and type(found) == 'table' and found or {}
end

local function entries(causes, id)
    local found = {}
    for _, words in pairs(causes) do
        for _, word in ipairs(words) do
            if word ~= '' then found[data_indexes.entry(word, id)] = true end
        end
    end
    return found
end

local function write(root, id, before, causes)
    local key, index = keys.wrong(root), keys.lookup(root, FIELD)
    local after = entries(causes, id)
    for entry in pairs(after) do
        if not before[entry] then redis.pcall('ZADD', index, 0, entry) end
    end
    for entry in pairs(before) do
        if not after[entry] then redis.pcall('ZREM', index, entry) end
    end
    if next(causes) then redis.pcall('HSET', key, id, cjson.encode(causes)) else redis.pcall('HDEL', key, id) end
end

local function size(causes)
    local count = 0
    for _ in pairs(causes) do count = count + 1 end
    return count
end

-- `cause` is wrong with the instance from now on; of very many causes only the first are kept.
function failures.note(root, id, cause, kind, text)
    if (id or '') == '' or redis.pcall('EXISTS', keys.instance(root, id)) ~= 1 then return end
    local causes = read(root, id)
    if not causes[cause] and size(causes) >= MAX_CAUSES then return end
    local before = entries(causes, id)
    causes[cause] = { strings.cut(kind or '', MAX_TEXT), strings.cut(text or '', MAX_TEXT) }
    write(root, id, before, causes)
end

-- It is so no longer.
function failures.clear(root, id, cause)
    if (id or '') == '' then return end
    local causes = read(root, id)
    if not causes[cause] then return end
    local before = entries(causes, id)
    causes[cause] = nil
    write(root, id, before, causes)
end

-- The instance goes.
function failures.drop(root, id)
    local causes = read(root, id)
    if next(causes) then write(root, id, entries(causes, id), {}) end
end

-- The lowest of the instance's entries whose kind or text begins so: of those that lead to one instance, that which counts.
-- nil where there is none.
function failures.first(root, id, prefix)
    local lowest
    for _, words in pairs(read(root, id)) do
        for _, word in ipairs(words) do
            if word ~= '' and sub(word, 1, #prefix) == prefix then
                local entry = data_indexes.entry(word, id)
                if not lowest or strings.before(entry, lowest) then lowest = entry end
            end
        end
    end
    return lowest
end

return failures
