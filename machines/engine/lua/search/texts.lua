-- needs: failures, json, keys
-- Finds words in everything that an instance holds: its id, the tags of its states, errors, data, the input of open jobs.
-- Case is that of A to Z alone; the caller sends other spellings.
local texts = {}

local find, lower, sub = string.find, string.lower, string.sub
local MIN_COPY = 4 -- characters of a hidden value whose copies are hidden, too (machines/audit/redaction.py)

texts.FIELD = 'instance.text'

-- Answers why something is no condition on text: {words = [[spelling, ...], ...], without = [field, ...], tagged = [[leaf,
-- ...], ...], fields = [field, ...]}. A word is found in one of its spellings; `tagged` are the leaves whose tags hold the word;
-- `fields`, asked for by other conditions, hold nothing of what is left out.
function texts.check(condition)
    for _, name in ipairs({ 'words', 'without', 'tagged', 'fields' }) do
        if type(condition[name]) ~= 'table' then return name .. ' is a JSON array' end
    end
    for i, word in ipairs(condition.words) do
        if type(word) ~= 'table' or type(condition.tagged[i]) ~= 'table' then return 'a word has spellings and leaves' end
        for _, spelling in ipairs(word) do
            if type(spelling) ~= 'string' then return 'a spelling is a text' end
        end
    end
    condition.hidden, condition.asked, condition.leaves = {}, {}, {}
    for _, field in ipairs(condition.without) do condition.hidden[field] = true end
    for _, field in ipairs(condition.fields) do condition.asked[field] = true end
    for i, leaves in ipairs(condition.tagged) do
        condition.leaves[i] = {}
        for _, leaf in ipairs(leaves) do condition.leaves[i][leaf] = true end
    end
end

local function collect_leaves(value, found)
    if type(value) ~= 'table' then
        local text = tostring(value)
        if #text < MIN_COPY or type(value) == 'boolean' then return end
        found[#found + 1] = lower(text)
        found[#found + 1] = lower(sub(json.quote(text), 2, -2)) -- as it stands in JSON
        return
    end
    for _, inner in pairs(value) do collect_leaves(inner, found) end
end

-- Adds what stands under a hidden name within a value.
local function collect_named(value, names, found)
    if type(value) ~= 'table' then return end
    for name, inner in pairs(value) do
        if names[name] then collect_leaves(inner, found) else collect_named(inner, names, found) end
    end
end

-- Lists the values of hidden fields, in small letters.
local function list_hidden(condition, flat)
    local found = {}
    for i = 1, #flat, 2 do
        local name, text = flat[i], flat[i + 1]
        local is_hidden = condition.hidden[name]
        if is_hidden or sub(name, 1, 1) ~= '_' and find(text, '^%s*[%[{]') then
            local ok, value = pcall(json.decode, text)
            if is_hidden then collect_leaves(text, found) end
            if ok then collect_named({ [name] = value }, condition.hidden, found) end
        end
    end
    return found
end

-- Tells whether a text holds what the person may not see: a copy of a hidden value, or a hidden name within JSON.
local function is_tainted(condition, text, hidden)
    for _, value in ipairs(hidden) do
        if find(text, value, 1, true) then return true end
    end
    for name in pairs(condition.hidden) do
        if find(text, '"' .. lower(name) .. '"', 1, true) then return true end
    end
    return false
end

-- Joins everything of the instance that is searched, in small letters. Errors and jobs are written by handlers: where a field
-- is hidden they may hold its values.
local function join_searched(condition, root, id, flat, hidden)
    local found = { lower(id) }
    for i = 1, #flat, 2 do
        local name, text = flat[i], flat[i + 1]
        if sub(name, 1, 1) ~= '_' and not condition.hidden[name] then
            if not hidden or not is_tainted(condition, lower(text), hidden) then found[#found + 1] = text end
        elseif name == '_jobs' and not hidden then
            for job in string.gmatch(text, '%S+') do
                local input = redis.pcall('HGET', keys.job(root, job), 'input')
                if type(input) == 'string' then found[#found + 1] = input end
            end
        end
    end
    if condition.has_failures == nil then condition.has_failures = redis.call('EXISTS', keys.wrong(root)) == 1 end
    for _, word in ipairs(condition.has_failures and not hidden and failures.list_words(root, id) or {}) do
        found[#found + 1] = word
    end
    return lower(table.concat(found, '\n'))
end

-- Tells whether a field that was asked for holds what is left out: a hit would tell it.
local function is_telling(condition, flat, hidden)
    for i = 1, #flat, 2 do
        if condition.asked[flat[i]] and is_tainted(condition, lower(flat[i + 1]), hidden) then return true end
    end
    return false
end

local function has_word(searched, spellings)
    for _, spelling in ipairs(spellings) do
        if find(searched, spelling, 1, true) then return true end
    end
    return false
end

local function is_tagged(configuration, leaves)
    if next(leaves) == nil then return false end
    for state in string.gmatch(configuration, '[^\n]+') do
        if leaves[state] then return true end
    end
    return false
end

-- Tells whether each word of the condition stands somewhere in the instance, which is in these states.
function texts.match(condition, root, id, configuration)
    local flat = redis.pcall('HGETALL', keys.instance(root, id))
    if flat.err then return false end
    local hidden = next(condition.hidden) and list_hidden(condition, flat)
    if hidden and is_telling(condition, flat, hidden) then return false end
    if #condition.words == 0 then return true end
    local searched = join_searched(condition, root, id, flat, hidden)
    for i, spellings in ipairs(condition.words) do
        if not has_word(searched, spellings) and not is_tagged(configuration, condition.leaves[i]) then return false end
    end
    return true
end

return texts
