-- needs: arguments, data_indexes, failures, json, keys, programs, strings, texts, time_limit, values
-- Compares instances with a search while it walks an index, so that only matching ones are read whole.
local filters = {}

local sub, type, unpack = string.sub, type, unpack
local PAGE_BYTES = 4194304 -- read for one page; what is larger comes with the next page
local EVERY = 16 -- instances between two looks at the time
local TEXTS_EVERY = 8 -- the same where all data is read, which may be 64 KiB of each
local IDS, ACTOR, VERSION = 'instance.id', 'instance.actor', 'instance.version'
local TRANSITION = 'instance.transition'
local CREATED, SUSPENDED = 'instance.created', 'instance.suspended' -- no index holds these
local COLUMNS = { [ACTOR] = '_actor', [TRANSITION] = '_came', [CREATED] = '_created', [SUSPENDED] = '_suspended',
    [texts.FIELD] = '_state' }

-- Parses JSON {states = [...], where = [condition, ...]}, both optional; nil for ''. Ends the call with
-- BADARG when it is malformed.
function filters.parse(text)
    if (text or '') == '' then return nil end
    local ok, found = pcall(json.decode, text)
    arguments.need(ok and type(found) == 'table', 'a filter is a JSON object')
    return filters.make(found.where, found.states)
end

-- Answers why these are no names of states; nil when they are.
function filters.check_states(states)
    if type(states) ~= 'table' then return 'states are a JSON array' end
    for _, state in ipairs(states) do
        if type(state) ~= 'string' then return 'a state is a text' end
    end
    return nil
end

-- Makes a filter from tables that may be nil.
function filters.make(where, states)
    arguments.refuse(where ~= nil and data_indexes.check_conditions(where) or states ~= nil and filters.check_states(states))
    local filter = { where = where or {}, columns = { '_def', '_state', '_entered' } }
    for i, condition in ipairs(filter.where) do
        local field = condition.field
        filter.columns[i + 3] = COLUMNS[field] or data_indexes.facts[field] and '_def' or field
        local is_fact = COLUMNS[field] or data_indexes.facts[field] or field == failures.FIELD
        if not is_fact then filter.reads_data = true end
        if field == texts.FIELD then
            filter.every = TEXTS_EVERY
            arguments.refuse(texts.check(condition))
        end
    end
    if states then
        filter.states = {}
        for _, state in ipairs(states) do filter.states[state] = true end
    end
    return filter
end

local function is_in_state(filter, configuration)
    for state in string.gmatch(configuration, '[^\n]+') do
        if filter.states[state] then return true end
    end
    return false
end

local function is_before(a, b)
    if type(a) == 'number' then return a < b end
    return strings.is_before(a, b)
end

local function matches_value(value, condition)
    local wanted = condition.eq
    if wanted == json.null then return value == nil or value == json.null end
    if type(wanted) == 'table' then return values.is_equal(value, wanted) end
    if wanted ~= nil then return value == wanted end
    local prefix = condition.prefix
    if prefix then return type(value) == 'string' and sub(value, 1, #prefix) == prefix end
    local kind = type(condition.ge or condition.gt or condition.le or condition.lt)
    if type(value) ~= kind then return false end
    return not (condition.ge and is_before(value, condition.ge) or condition.gt and not is_before(condition.gt, value)
        or condition.le and is_before(condition.le, value) or condition.lt and not is_before(value, condition.lt))
end

-- Stands for a list or an object that is not decoded: only a condition that names one can match it.
local CONTAINER = {}

local function is_container(declared, raw)
    return not declared.scalar and string.find(raw, '^%s*[%[{]') ~= nil
end

-- Data of a version that is missing passes: its reader says so.
local function matches_condition(condition, compiled, root, id, def, raw, entry)
    local field = condition.field
    if field == failures.FIELD then
        local first = failures.find_first(root, id, condition.prefix or '')
        return first and (not entry or first == entry)
    end
    if field == texts.FIELD then return texts.match(condition, root, id, raw or '') end
    if field == IDS then return matches_value(id, condition) end
    if field == ACTOR then return matches_value(raw or nil, condition) end
    if field == TRANSITION then return data_indexes.has_arrival(raw or nil, condition.eq) end
    if field == CREATED then return matches_value(tonumber(raw or nil), condition) end
    if field == SUSPENDED then return matches_value((raw or '') ~= '', condition) end
    if field == VERSION then return matches_value(data_indexes.parse_version(def), condition) end
    if not compiled then return true end
    local declared, value = compiled.fields[field], nil
    local is_deep = type(condition.eq) == 'table' and condition.eq ~= json.null
    if declared and raw then value = not is_deep and is_container(declared, raw) and CONTAINER or declared.decode(raw) end
    return matches_value(value, condition)
end

-- Answers definition, configuration and the ms of its entry for a matching instance, else nil. `entry`: the index entry that
-- led to the instance, where several may.
function filters.match(filter, root, id, entry)
    local row = redis.pcall('HMGET', keys.instance(root, id), unpack(filter.columns))
    if row.err or not row[1] then return nil end
    if filter.states and not is_in_state(filter, row[2] or '') then return nil end
    local compiled = filter.reads_data and programs.load(root, row[1])
    for i, condition in ipairs(filter.where) do
        if not matches_condition(condition, compiled, root, id, row[1], row[i + 3], entry) then return nil end
    end
    return row
end

local function count_bytes(row)
    local bytes = 0
    for i = 1, #row do bytes = bytes + (row[i] and #row[i] or 0) end
    return bytes
end

-- Walks `found`, which has an id at every `step`th place from the first, for the time of a slice. Answers the places of at
-- most `limit` matches, their hashes, the last place looked at, and how many were; fewer when the hashes are large. `several`:
-- more than one entry may lead to an instance.
function filters.select_page(filter, root, found, step, limit, id_of, several)
    local chosen, hashes, last, bytes = {}, {}, 0, 0
    local looked, is_over = 0, time_limit.start()
    local every = filter and filter.every or EVERY
    for i = 1, #found, step do
        if #chosen == limit or bytes > PAGE_BYTES or looked > 0 and looked % every == 0 and is_over() then break end
        last, looked = i, looked + 1
        local row = not filter or filters.match(filter, root, id_of(found[i]), several and found[i])
        if filter and row then bytes = bytes + count_bytes(row) end
        if row then
            local hash = redis.call('HGETALL', keys.instance(root, id_of(found[i])))
            bytes = bytes + count_bytes(hash)
            chosen[#chosen + 1], hashes[#hashes + 1] = i, hash
        end
    end
    return chosen, hashes, last, looked
end

return filters
