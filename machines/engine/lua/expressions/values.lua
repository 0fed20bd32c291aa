-- needs: json, strings, work_budget
-- The meaning of values in expressions. There null is nil; inside tables it is json.null.
local values = {}

local MAX_TEXT = 65536
local MAX_SHOWN = 200
local type, charge = type, work_budget.charge

function values.fail(message)
    error({ sb = message })
end

-- Describes whatever pcall caught: the engine's own errors are {sb = ...}; the server's errors keep their text; anything
-- else is a fault of the library, and names its place.
function values.describe_error(caught)
    if type(caught) == 'table' and (caught.sb or caught.err) then return caught.sb or caught.err end
    if type(caught) == 'string' and not string.find(caught, '^%S+:%d+: ') then return caught end
    return 'internal: ' .. tostring(caught)
end

function values.to_nil(value)
    if value == json.null then return nil end
    return value
end

function values.to_null(value)
    if value == nil then return json.null end
    return value
end

function values.kind_of(value)
    if value == nil or value == json.null then return 'null' end
    local kind = type(value)
    if kind == 'table' then return json.is_array(value) and 'array' or 'object' end
    return kind
end

-- Python's truth: None, False, 0, "", [] and {} are false.
function values.is_true(value)
    if value == nil or value == false or value == 0 or value == '' or value == json.null then return false end
    if type(value) == 'table' then return next(value) ~= nil end
    return true
end

local function is_equal_table(a, b)
    if json.is_array(a) ~= json.is_array(b) then return false end
    for key, item in pairs(a) do
        charge(1.5)
        if b[key] == nil or not values.is_equal(item, b[key]) then return false end
    end
    for key in pairs(b) do
        charge(0.5)
        if a[key] == nil then return false end
    end
    return true
end

function values.is_equal(a, b)
    if a == b then return true end
    return type(a) == 'table' and type(b) == 'table' and is_equal_table(a, b)
end

local function compare_arrays(a, b)
    for i = 1, math.min(#a, #b) do
        charge(2)
        local x, y = values.to_nil(a[i]), values.to_nil(b[i])
        if not values.is_equal(x, y) then return values.is_less(x, y) and -1 or 1 end
    end
    return #a - #b
end

-- Tells whether a < b for two numbers, two strings or two arrays; other values have no order.
function values.is_less(a, b)
    local type_a, type_b = type(a), type(b)
    if type_a == 'number' and type_b == 'number' then return a < b end
    if type_a == 'string' and type_b == 'string' then
        charge(1.5)
        return strings.is_before(a, b)
    end
    local ka, kb = values.kind_of(a), values.kind_of(b)
    if ka == 'array' and kb == 'array' then return compare_arrays(a, b) < 0 end
    values.fail('cannot order ' .. ka .. ' and ' .. kb)
end

-- Finds a text in another, from a position on. The highest cost is charged first: that of texts which nearly match at every
-- position.
function values.find(text, part, from)
    local positions = #text - (from or 1) - #part + 2
    if positions > 0 then charge(positions * (0.05 + #part / 5000)) end
    return string.find(text, part, from or 1, true)
end

function values.contains(container, item)
    local kind = values.kind_of(container)
    if kind == 'string' then
        if type(item) ~= 'string' then values.fail('only text can be in text, not ' .. values.kind_of(item)) end
        return values.find(container, item) ~= nil
    elseif kind == 'object' then
        return type(item) == 'string' and container[item] ~= nil
    elseif kind == 'array' then
        charge(#container)
        for i = 1, #container do
            if values.is_equal(values.to_nil(container[i]), item) then return true end
        end
        return false
    end
    values.fail('nothing can be in ' .. kind)
end

function values.check_number(value)
    if type(value) ~= 'number' then values.fail('a number was expected, not ' .. values.kind_of(value)) end
    return value
end

function values.check_whole(value)
    if type(value) ~= 'number' or value % 1 ~= 0 then
        values.fail('a whole number was expected, not ' .. values.describe(value))
    end
    return value
end

function values.check_text(value)
    if type(value) ~= 'string' then values.fail('text was expected, not ' .. values.kind_of(value)) end
    return value
end

function values.check_length(bytes)
    if bytes > MAX_TEXT then values.fail('text longer than ' .. MAX_TEXT .. ' bytes') end
end

-- Checks and charges a text that is about to be joined.
function values.charge_join(bytes)
    values.check_length(bytes)
    if bytes > 200 then charge(bytes / 200) end
end

-- Encodes a value that leaves the step for a job, a message or another event, as long as a text may be.
function values.encode(what, value)
    local text = json.encode(value)
    if #text > MAX_TEXT then
        values.fail(what .. ' has ' .. #text .. ' bytes of JSON; ' .. MAX_TEXT .. ' are allowed')
    end
    return text
end

function values.check_finite(number)
    if number ~= number or number == math.huge or number == -math.huge then
        values.fail('the result is not a finite number')
    end
    return number
end

function values.describe(value)
    if type(value) == 'string' then value = string.sub(value, 1, MAX_SHOWN) end
    local text = json.encode(value)
    return #text > MAX_SHOWN and string.sub(text, 1, MAX_SHOWN - 3) .. '...' or text
end

-- Item of a list, field of an object or character of a text; null when it is missing.
function values.get(container, key)
    local kind = values.kind_of(container)
    if kind == 'object' then
        if type(key) ~= 'string' then values.fail('a field name was expected, not ' .. values.kind_of(key)) end
        return values.to_nil(container[key])
    elseif kind == 'array' then
        values.check_whole(key)
        return values.to_nil(container[key < 0 and #container + key + 1 or key + 1])
    elseif kind == 'string' then
        values.check_whole(key)
        return strings.character_at(container, key < 0 and strings.length(container) + key + 1 or key + 1)
    end
    if kind == 'null' then values.fail('nothing there to look into (null)') end
    values.fail('cannot look into ' .. kind)
end

return values
