-- needs: json, keys, program, texts
-- What a search compares while it walks an index, so that only those that match are read as a whole. Whoever asks compares
-- again: what cannot be told here passes.
local filters = {}

local IDS = 'instance.id'
local match, sub, type, unpack = string.match, string.sub, type, unpack

-- From JSON {definition, states = [...], where = [condition, ...]}, each of which may be missing; nil for ''. Else nil and why.
function filters.read(text)
    if (text or '') == '' then return nil end
    local ok, found = pcall(json.decode, text)
    if not ok or type(found) ~= 'table' then return nil, 'a filter is a JSON object' end
    local filter = { definition = found.definition and tostring(found.definition), where = found.where or {} }
    filter.columns = { '_def', '_state' }
    for i, condition in ipairs(filter.where) do filter.columns[i + 2] = condition.field end
    if found.states then
        filter.states = {}
        for _, state in ipairs(found.states) do filter.states[state] = true end
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
    return texts.before(a, b)
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

-- Does the instance match?
function filters.passes(filter, root, id)
    local row = redis.pcall('HMGET', keys.instance(root, id), unpack(filter.columns))
    if row.err or not row[1] then return false end
    if filter.definition and match(row[1], '^%d+') ~= filter.definition then return false end
    if filter.states and not stands(filter, row[2] or '') then return false end
    local compiled = filter.where[1] and program.load(root, row[1])
    if not compiled then return true end
    for i, condition in ipairs(filter.where) do
        local field, raw, value = compiled.fields[condition.field], row[i + 2], nil
        if condition.field == IDS then
            value = id
        elseif field and raw then
            value = field.decode(raw)
        end
        if not holds(value, condition) then return false end
    end
    return true
end

-- Walks `found`, which has an id at every `step`th place from the first: answers the places of at most `limit` that match,
-- and the place of the last that was looked at.
function filters.walk(filter, root, found, step, limit, id_of)
    local chosen, last = {}, 0
    for i = 1, #found, step do
        if #chosen == limit then break end
        last = i
        if not filter or filters.passes(filter, root, id_of(found[i])) then chosen[#chosen + 1] = i end
    end
    return chosen, last
end

return filters
