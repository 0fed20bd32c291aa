-- needs: ecmascript, json, strings, values, work_budget
-- Parts of texts, lists and objects, and changed copies of them. Positions count from 0, as in ECMAScript; nothing is
-- changed in place.
local sequences = {}

local MAX_ITEMS = 10000
local COPY, CHARACTER = 0.5, 2 -- units of work for each

local to_text, charge = ecmascript.to_text, work_budget.charge

local function to_position(key)
    if type(key) == 'string' and string.match(key, '^%d+$') and #key < 16 then key = tonumber(key) end
    if type(key) == 'number' and key >= 0 and key % 1 == 0 then return key end
end

local function count_items(x)
    return type(x) == 'string' and strings.length(x) or #x
end

-- Answers x[key]; nil for a missing item.
function sequences.item(_, x, key)
    local kind = values.kind_of(x)
    if kind == 'null' then values.fail('nothing there to look into (null)') end
    if kind == 'object' then return values.to_nil(x[to_text(nil, key)]) end
    if kind ~= 'array' and kind ~= 'string' then return nil end
    if key == 'length' then return count_items(x) end
    local at = to_position(key)
    if not at then return nil end
    if kind == 'string' then return strings.character_at(x, at + 1) end
    return values.to_nil(x[at + 1])
end

function sequences.length(_, x) return sequences.item(nil, x, 'length') end

function sequences.has(_, x, key)
    local kind = values.kind_of(x)
    if kind == 'object' then return x[to_text(nil, key)] ~= nil end
    if kind ~= 'array' then return false end
    local at = to_position(key)
    return key == 'length' or at ~= nil and at < #x
end

function sequences.filled(_, x)
    if values.kind_of(x) == 'object' and next(x) == nil then return nil end
    return x
end

function sequences.is_list(_, x) return values.kind_of(x) == 'array' end

local function copy_table(x)
    if json.is_array(x) then
        charge(#x * COPY)
        local items = json.list()
        for i = 1, #x do items[i] = x[i] end
        return items
    end
    local fields = {}
    for key, value in pairs(x) do
        charge(1)
        fields[key] = value
    end
    return fields
end

-- Copies x with x[key] set to the value; a list grows as far as needed.
function sequences.put(_, x, key, value)
    local kind = values.kind_of(x)
    if kind == 'object' then
        local fields = copy_table(x)
        fields[to_text(nil, key)] = values.to_null(value)
        return fields
    end
    local at = to_position(key)
    if kind ~= 'array' or not at then
        values.fail('cannot put ' .. values.describe(key) .. ' into ' .. kind)
    end
    if at >= MAX_ITEMS then values.fail('a list longer than ' .. MAX_ITEMS) end
    local items = copy_table(x)
    charge(math.max(0, at - #items) * COPY)
    for i = #items + 1, at do items[i] = json.null end
    items[at + 1] = values.to_null(value)
    return items
end

-- Copies x without x[key].
function sequences.without(_, x, key)
    local kind = values.kind_of(x)
    if kind ~= 'object' and kind ~= 'array' then values.fail('cannot take anything out of ' .. kind) end
    local rest, at = copy_table(x), to_position(key)
    if kind == 'object' then
        rest[to_text(nil, key)] = nil
    elseif at and at < #rest then
        rest[at + 1] = json.null
    end
    return rest
end

local function append_all(items, x)
    if not json.is_array(x) then
        items[#items + 1] = values.to_null(x)
        return
    end
    if #items + #x > MAX_ITEMS then values.fail('a list longer than ' .. MAX_ITEMS) end
    charge(#x)
    for i = 1, #x do items[#items + 1] = x[i] end
end

-- Concatenates: lists are appended item by item, other values as one; after a text all become text.
function sequences.concat(_, first, ...)
    local count = select('#', ...)
    if values.kind_of(first) == 'array' then
        local items, others = copy_table(first), { ... }
        for i = 1, count do append_all(items, others[i]) end
        return items
    end
    local parts, others, bytes = { values.check_text(first) }, { ... }, #first
    for i = 1, count do
        parts[i + 1] = to_text(nil, others[i])
        bytes = bytes + #parts[i + 1]
    end
    values.charge_join(bytes)
    return table.concat(parts)
end

-- Cuts the characters from position `from` to before `to`.
local function cut_text(text, from, to)
    if from >= to then return '' end
    charge(#text / 4)
    if not string.find(text, '[\128-\255]') then return string.sub(text, from + 1, to) end
    local start, stop, count = nil, #text, 0
    for at in string.gmatch(text, '()[%z\1-\127\192-\255][\128-\191]*') do
        if count == from then start = at end
        if count == to then
            stop = at - 1
            break
        end
        count = count + 1
    end
    return start and string.sub(text, start, stop) or ''
end

local function to_whole(value, default)
    if value == nil then return default end
    values.check_number(value)
    return value < 0 and math.ceil(value) or math.floor(value)
end

local function clamp(at, size)
    return math.max(0, math.min(at, size))
end

-- Negative positions count from the end.
function sequences.slice(_, x, from, to)
    local kind = values.kind_of(x)
    if kind ~= 'array' and kind ~= 'string' then values.fail('slice() takes text or a list, not ' .. kind) end
    local size = count_items(x)
    from, to = to_whole(from, 0), to_whole(to, size)
    from = clamp(from < 0 and size + from or from, size)
    to = clamp(to < 0 and size + to or to, size)
    if kind == 'string' then return cut_text(x, from, to) end
    charge(math.max(0, to - from))
    local items = json.list()
    for i = from + 1, to do items[#items + 1] = x[i] end
    return items
end

function sequences.substring(_, text, from, to)
    local size = strings.length(values.check_text(text))
    from, to = clamp(to_whole(from, 0), size), clamp(to_whole(to, size), size)
    return cut_text(text, math.min(from, to), math.max(from, to))
end

function sequences.char_at(_, text, at)
    return strings.character_at(values.check_text(text), to_whole(at, 0) + 1) or ''
end

function sequences.characters(_, text)
    local items = json.list()
    for character in string.gmatch(values.check_text(text), '[%z\1-\127\192-\255][\128-\191]*') do
        items[#items + 1] = character
        charge(CHARACTER)
        if #items > MAX_ITEMS then values.fail('a list longer than ' .. MAX_ITEMS) end
    end
    return items
end

-- Answers the code point of a character; nil past the end.
function sequences.char_code(_, text, at)
    local character = strings.character_at(values.check_text(text), to_whole(at, 0) + 1)
    if not character then return nil end
    local first, code = string.byte(character), string.byte(character)
    for _, mark in ipairs({ 192, 224, 240 }) do
        if first >= mark then code = first - mark end
    end
    for i = 2, #character do code = code * 64 + string.byte(character, i) - 128 end
    return code
end

function sequences.repeated(_, text, times)
    times = to_whole(times, 0)
    if times < 0 then values.fail('repeated() takes a number from 0, not ' .. values.describe(times)) end
    values.charge_join(#values.check_text(text) * times)
    charge(#text * times / 25) -- string.rep copies byte by byte
    return string.rep(text, times)
end

local function find_in_list(list, part, from, to, step)
    charge(math.max(0, (to - from) * step) + 1)
    for i = from, to, step do
        if values.is_equal(values.to_nil(list[i + 1]), part) then return i end
    end
    return -1
end

-- Finds the first position of `part` in x, from a position on; -1 when it is missing.
function sequences.index_of(_, x, part, from)
    if values.kind_of(x) == 'array' then
        from = to_whole(from, 0)
        return find_in_list(x, part, from < 0 and math.max(0, #x + from) or from, #x - 1, 1)
    end
    local text = to_text(nil, part)
    local skipped = #cut_text(values.check_text(x), 0, clamp(to_whole(from, 0), #x))
    local at = values.find(x, text, skipped + 1)
    charge(#x / 200)
    return at and strings.length(string.sub(x, 1, at - 1)) or -1
end

local function find_last(text, part)
    if part == '' then return #text + 1 end
    charge(#text * (0.05 + #part / 5000))
    local found, at = nil, string.find(text, part, 1, true)
    while at do
        charge(1)
        found, at = at, string.find(text, part, at + 1, true)
    end
    return found
end

function sequences.last_index_of(_, x, part)
    if values.kind_of(x) == 'array' then return find_in_list(x, part, #x - 1, 0, -1) end
    local at = find_last(values.check_text(x), to_text(nil, part))
    return at and strings.length(string.sub(x, 1, at - 1)) or -1
end

function sequences.replace_first(_, text, old, new)
    local at, stop = values.find(values.check_text(text), values.check_text(old))
    if not at then return text end
    new = to_text(nil, new)
    values.charge_join(#text - #old + #new)
    local result = string.sub(text, 1, at - 1) .. new .. string.sub(text, stop + 1)
    return result
end

function sequences.reversed(_, list)
    if values.kind_of(list) ~= 'array' then values.fail('reversed() takes a list, not ' .. values.kind_of(list)) end
    charge(#list)
    local items = json.list()
    for i = #list, 1, -1 do items[#items + 1] = list[i] end
    return items
end

-- Lists the whole numbers from `from` to before `to`.
function sequences.range(_, from, to)
    values.check_number(from)
    local count = math.max(0, math.ceil(values.check_number(to) - from))
    if count > MAX_ITEMS then values.fail('a list longer than ' .. MAX_ITEMS) end
    charge(count * 2)
    local items = json.list()
    for i = 1, count do items[i] = from + i - 1 end
    return items
end

return sequences
