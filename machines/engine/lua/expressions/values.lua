-- needs: json, strings, work_budget
-- What the expression language means by its values. In expressions null is nil; inside tables it is json.null.
local values = {}

local MAX_TEXT = 65536
local MAX_SHOWN = 200
local type, charge = type, work_budget.charge

function values.fail(message)
    error({ sb = message })
end

-- The message of whatever pcall caught: ours carry {sb = ...}; a command that the server refused is told in its own words;
-- anything else is a fault of the library itself, and says where.
function values.message(caught)
    if type(caught) == 'table' and (caught.sb or caught.err) then return caught.sb or caught.err end
    if type(caught) == 'string' and not string.find(caught, '^%S+:%d+: ') then return caught end
    return 'internal: ' .. tostring(caught)
end

function values.plain(value)
    if value == json.null then return nil end
    return value
end

function values.stored(value)
    if value == nil then return json.null end
    return value
end

function values.kind(value)
    if value == nil or value == json.null then return 'null' end
    local kind = type(value)
    if kind == 'table' then return json.is_array(value) and 'array' or 'object' end
    return kind
end

-- Python's truth: None, False, 0, "", [] and {} are false.
function values.truth(value)
    if value == nil or value == false or value == 0 or value == '' or value == json.null then return false end
    if type(value) == 'table' then return next(value) ~= nil end
    return true
end

local function equal_tables(a, b)
    if json.is_array(a) ~= json.is_array(b) then return false end
    for key, item in pairs(a) do
        charge(1.5)
        if b[key] == nil or not values.equal(item, b[key]) then return false end
    end
    for key in pairs(b) do
        charge(0.5)
        if a[key] == nil then return false end
    end
    return true
end

function values.equal(a, b)
    if a == b then return true end
    return type(a) == 'table' and type(b) == 'table' and equal_tables(a, b)
end

local function compare_arrays(a, b)
    for i = 1, math.min(#a, #b) do
        charge(2)
        local x, y = values.plain(a[i]), values.plain(b[i])
        if not values.equal(x, y) then return values.less(x, y) and -1 or 1 end
    end
    return #a - #b
end

-- a < b for two numbers, two strings or two arrays; anything else has no order.
function values.less(a, b)
    local type_a, type_b = type(a), type(b)
    if type_a == 'number' and type_b == 'number' then return a < b end
    if type_a == 'string' and type_b == 'string' then
        charge(1.5)
        return strings.is_before(a, b)
    end
    local ka, kb = values.kind(a), values.kind(b)
    if ka == 'array' and kb == 'array' then return compare_arrays(a, b) < 0 end
    values.fail('cannot order ' .. ka .. ' and ' .. kb)
end

-- Where a text is in another, from a position on. What that costs at most is charged before: texts that nearly match at
-- every position.
function values.find(text, part, from)
    local places = #text - (from or 1) - #part + 2
    if places > 0 then charge(places * (0.05 + #part / 5000)) end
    return string.find(text, part, from or 1, true)
end

function values.contains(container, item)
    local kind = values.kind(container)
    if kind == 'string' then
        if type(item) ~= 'string' then values.fail('only text can be in text, not ' .. values.kind(item)) end
        return values.find(container, item) ~= nil
    elseif kind == 'object' then
        return type(item) == 'string' and container[item] ~= nil
    elseif kind == 'array' then
        charge(#container)
        for i = 1, #container do
            if values.equal(values.plain(container[i]), item) then return true end
        end
        return false
    end
    values.fail('nothing can be in ' .. kind)
end

function values.number(value)
    if type(value) ~= 'number' then values.fail('a number was expected, not ' .. values.kind(value)) end
    return value
end

function values.whole(value)
    if type(value) ~= 'number' or value % 1 ~= 0 then
        values.fail('a whole number was expected, not ' .. values.show(value))
    end
    return value
end

function values.text(value)
    if type(value) ~= 'string' then values.fail('text was expected, not ' .. values.kind(value)) end
    return value
end

function values.fitting(bytes)
    if bytes > MAX_TEXT then values.fail('text longer than ' .. MAX_TEXT .. ' bytes') end
end

-- The same of a text that is about to be put together.
function values.join(bytes)
    values.fitting(bytes)
    if bytes > 200 then charge(bytes / 200) end
end

-- JSON of a value that leaves the step for a job, a message or another event: as long as a text may be.
function values.encoded(what, value)
    local text = json.encode(value)
    if #text > MAX_TEXT then
        values.fail(what .. ' has ' .. #text .. ' bytes of JSON; ' .. MAX_TEXT .. ' are allowed')
    end
    return text
end

function values.finite(number)
    if number ~= number or number == math.huge or number == -math.huge then
        values.fail('the result is not a finite number')
    end
    return number
end

function values.show(value)
    if type(value) == 'string' then value = string.sub(value, 1, MAX_SHOWN) end
    local text = json.encode(value)
    return #text > MAX_SHOWN and string.sub(text, 1, MAX_SHOWN - 3) .. '...' or text
end

-- Item of a list, field of an object or character of a text; what is not there is null.
function values.get(container, key)
    local kind = values.kind(container)
    if kind == 'object' then
        if type(key) ~= 'string' then values.fail('a field name was expected, not ' .. values.kind(key)) end
        return values.plain(container[key])
    elseif kind == 'array' then
        values.whole(key)
        return values.plain(container[key < 0 and #container + key + 1 or key + 1])
    elseif kind == 'string' then
        values.whole(key)
        return strings.character_at(container, key < 0 and strings.length(container) + key + 1 or key + 1)
    end
    if kind == 'null' then values.fail('nothing there to look into (null)') end
    values.fail('cannot look into ' .. kind)
end

return values
