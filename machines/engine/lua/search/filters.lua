-- needs: data_indexes, failures, json, keys, programs, strings, time_limit
-- What a search compares while it walks an index, so that only those that match are read as a whole. Whoever asks compares
-- again: what cannot be told here passes.
local filters = {}

local sub, type, unpack = string.sub, type, unpack
local MAX_BYTES = 4194304 -- read for one page: what is larger comes with the next
local PAGE_MS = 20 -- spent on reading data to compare it
local IDS, ACTOR, VERSION = 'instance.id', 'instance.actor', 'instance.version'

-- From JSON {states = [...], where = [condition, ...]}, each of which may be missing; nil for ''. Else nil and why.
function filters.read(text)
    if (text or '') == '' then return nil end
    local ok, found = pcall(json.decode, text)
    if not ok or type(found) ~= 'table' then return nil, 'a filter is a JSON object' end
    return filters.of(found.where, found.states)
end

-- Why these are no names of states; nil where they are.
function filters.misnamed(states)
    if type(states) ~= 'table' then return 'states are a JSON array' end
    for _, state in ipairs(states) do
        if type(state) ~= 'string' then return 'a state is a text' end
    end
    return nil
end

-- The same from tables, each of which may be nil.
function filters.of(where, states)
    local why = where ~= nil and data_indexes.misfit(where) or states ~= nil and filters.misnamed(states)
    if why then return nil, why end
    local filter = { where = where or {}, columns = { '_def', '_state', '_entered' } }
    for i, condition in ipairs(filter.where) do
        local field = condition.field
        filter.columns[i + 3] = field == ACTOR and '_actor' or data_indexes.facts[field] and '_def' or field
        if not data_indexes.facts[field] and field ~= failures.FIELD then filter.reads_data = true end
    end
    if states then
        filter.states = {}
        for _, state in ipairs(states) do filter.states[state] = true end
    end
    return filter
end

local function stands(filter, configuration)
    for state in string.gmatch(configuration, '[^\n]+') do
        if filter.states[state] then return true end
    end
    return false
end

local function before(a, b)
    if type(a) == 'number' then return a < b end
    return strings.before(a, b)
end

local function holds(value, condition)
    local wanted = condition.eq
    if wanted == json.null then return value == nil or value == json.null end
    if type(wanted) == 'table' then return true end
    if wanted ~= nil then return value == wanted end
    local prefix = condition.prefix
    if prefix then return type(value) == 'string' and sub(value, 1, #prefix) == prefix end
    local kind = type(condition.ge or condition.gt or condition.le or condition.lt)
    if type(value) ~= kind then return false end
    return not (condition.ge and before(value, condition.ge) or condition.gt and not before(condition.gt, value)
        or condition.le and before(condition.le, value) or condition.lt and not before(value, condition.lt))
end

-- No condition looks into a list or an object: none has to be read.
local CONTAINER = {}

local function is_container(declared, raw)
    return not declared.scalar and string.find(raw, '^%s*[%[{]') ~= nil
end

-- Of data that cannot be read nobody here can tell: it passes.
local function passes_one(condition, compiled, root, id, def, raw, entry)
    local field = condition.field
    if field == failures.FIELD then
        local first = failures.first(root, id, condition.prefix or '')
        return first and (not entry or first == entry)
    end
    if field == IDS then return holds(id, condition) end
    if field == ACTOR then return holds(raw or nil, condition) end
    if field == VERSION then return holds(data_indexes.version(def), condition) end
    if not compiled then return true end
    local declared, value = compiled.fields[field], nil
    if declared and raw then value = is_container(declared, raw) and CONTAINER or declared.decode(raw) end
    return holds(value, condition)
end

-- What was read of an instance that matches: definition, configuration, ms it entered it; nil where it does not. `entry`: what
-- led to it, where several may lead to one instance.
function filters.passes(filter, root, id, entry)
    local row = redis.pcall('HMGET', keys.instance(root, id), unpack(filter.columns))
    if row.err or not row[1] then return nil end
    if filter.states and not stands(filter, row[2] or '') then return nil end
    local compiled = filter.reads_data and programs.load(root, row[1])
    for i, condition in ipairs(filter.where) do
        if not passes_one(condition, compiled, root, id, row[1], row[i + 3], entry) then return nil end
    end
    return row
end

local function bytes_of(row)
    local bytes = 0
    for i = 1, #row do bytes = bytes + (row[i] and #row[i] or 0) end
    return bytes
end

-- Walks `found`, which has an id at every `step`th place from the first: answers the places of at most `limit` that match,
-- their hashes, and the place of the last that was looked at; fewer where they are large. `several`: the things found may
-- lead to one instance more than once.
function filters.walk(filter, root, found, step, limit, id_of, several)
    local chosen, hashes, last, bytes = {}, {}, 0, 0
    local over = filter and filter.reads_data and time_limit.start(PAGE_MS)
    for i = 1, #found, step do
        if #chosen == limit or bytes > MAX_BYTES or i > 1 and over and over() then break end
        last = i
        local row = not filter or filters.passes(filter, root, id_of(found[i]), several and found[i])
        if filter and row then bytes = bytes + bytes_of(row) end
        if row then
            local hash = redis.call('HGETALL', keys.instance(root, id_of(found[i])))
            bytes = bytes + bytes_of(hash)
            chosen[#chosen + 1], hashes[#hashes + 1] = i, hash
        end
    end
    return chosen, hashes, last
end

return filters
