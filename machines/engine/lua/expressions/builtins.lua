-- needs: ecmascript, json, random, sequences, strings, values, work_budget
-- The functions that an expression may call. Each gets the context first.
local builtins = {}

for _, functions in ipairs({ ecmascript, sequences }) do
    for name, fn in pairs(functions) do builtins[name] = fn end
end

local charge = work_budget.charge

local MAX_TOKEN = 64
local MAX_NUMERAL = 400 -- characters of a number written as text
local MAX_DIGITS = 99 -- the most that string.format prints
local MAX_EXPONENT = 308 -- the largest double is below 10^309

local function count_fields(value)
    local count = 0
    for _ in pairs(value) do count = count + 1 end
    charge(count)
    return count
end

function builtins.len(_, value)
    local kind = values.kind_of(value)
    if kind == 'string' then return strings.length(value) end
    if kind == 'array' then return #value end
    if kind == 'object' then return count_fields(value) end
    values.fail('len() takes text, a list or an object, not ' .. kind)
end

local function make_extreme(name, is_better)
    return function(_, first, ...)
        local items, count = { first, ... }, select('#', ...) + 1
        if count == 1 and values.kind_of(first) == 'array' then items, count = first, #first end
        charge(count * 2)
        local best = values.to_nil(items[1])
        if best == nil then values.fail(name .. '() of nothing') end
        for i = 2, count do
            local item = values.to_nil(items[i])
            if is_better(item, best) then best = item end
        end
        return best
    end
end

builtins.min = make_extreme('min', function(a, b) return values.is_less(a, b) end)
builtins.max = make_extreme('max', function(a, b) return values.is_less(b, a) end)

function builtins.abs(_, value) return math.abs(values.check_number(value)) end
function builtins.floor(_, value) return math.floor(values.check_number(value)) end
function builtins.ceil(_, value) return math.ceil(values.check_number(value)) end

-- Rounds half to even by the exact value, like Python: the C library's formatting does that.
function builtins.round(_, value, digits)
    values.check_number(value)
    digits = digits == nil and 0 or values.check_whole(digits) + 0 -- minus zero is zero
    if digits > MAX_DIGITS then return value end
    if digits >= 0 then return tonumber(string.format('%.' .. digits .. 'f', value)) end
    if digits < -MAX_EXPONENT then return 0 end
    local unit = 10 ^ -digits
    return values.check_finite(tonumber(string.format('%.0f', value / unit)) * unit)
end

function builtins.number(_, value)
    if type(value) == 'number' then return value end
    if type(value) == 'boolean' then return value and 1 or 0 end
    local text = type(value) == 'string' and strings.strip(value)
    local numeral = text and #text <= MAX_NUMERAL and string.match(text, '^[+-]?[%d.]+[eE]?[+-]?%d*$')
    local number = numeral and tonumber(numeral)
    if not number then values.fail('not a number: ' .. values.describe(value)) end
    return values.check_finite(number)
end

function builtins.int(ctx, value)
    local number = builtins.number(ctx, value)
    return number < 0 and math.ceil(number) or math.floor(number)
end

function builtins.str(_, value)
    if type(value) == 'string' then return value end
    if value == nil then return 'None' end
    if value == true then return 'True' end
    if value == false then return 'False' end
    return json.encode(value)
end

function builtins.bool(_, value) return values.is_true(value) end
function builtins.lower(_, text)
    charge(#values.check_text(text) / 40)
    return string.lower(text)
end

function builtins.upper(_, text)
    charge(#values.check_text(text) / 40)
    return string.upper(text)
end

function builtins.strip(_, text) return strings.strip(values.check_text(text)) end

function builtins.startswith(_, text, part)
    charge(#values.check_text(part) / 200)
    return string.sub(values.check_text(text), 1, #values.check_text(part)) == part
end

function builtins.endswith(_, text, part)
    charge(#values.check_text(part) / 200)
    return string.sub(values.check_text(text), -#part) == part or part == ''
end

function builtins.contains(_, container, item) return values.contains(container, item) end

function builtins.split(_, text, separator)
    values.check_text(text)
    if values.check_text(separator) == '' then values.fail('split() needs a separator') end
    charge(#text * (0.05 + #separator / 5000))
    local parts, from = json.list(), 1
    while true do
        local start, stop = string.find(text, separator, from, true)
        charge(3)
        parts[#parts + 1] = string.sub(text, from, start and start - 1)
        if not start then return parts end
        from = stop + 1
    end
end

-- The length is computed first: a text that is too long is never built.
function builtins.join(_, list, separator)
    if values.kind_of(list) ~= 'array' then values.fail('join() takes a list, not ' .. values.kind_of(list)) end
    charge(#list)
    local bytes = #values.check_text(separator) * math.max(0, #list - 1)
    for i = 1, #list do bytes = bytes + #values.check_text(values.to_nil(list[i])) end
    values.charge_join(bytes)
    return table.concat(list, separator)
end

function builtins.replace(ctx, text, old, new)
    if values.check_text(old) == '' then values.fail('replace() needs something to replace') end
    return builtins.join(ctx, builtins.split(ctx, text, old), values.check_text(new))
end

local function list_keys(object)
    if values.kind_of(object) ~= 'object' then values.fail('an object was expected, not ' .. values.kind_of(object)) end
    local names = json.list()
    for name in pairs(object) do names[#names + 1] = name end
    charge(#names * (1 + math.log(#names + 1)))
    strings.sort(names)
    return names
end

function builtins.keys(_, object) return list_keys(object) end

function builtins.values(_, object)
    local items = json.list()
    for i, name in ipairs(list_keys(object)) do items[i] = object[name] end
    return items
end

function builtins.sum(_, list)
    if values.kind_of(list) ~= 'array' then values.fail('sum() takes a list, not ' .. values.kind_of(list)) end
    charge(#list)
    local total = 0
    for i = 1, #list do total = total + values.check_number(values.to_nil(list[i])) end
    return values.check_finite(total)
end

local function merge(from, into, low, middle, high)
    local left, right = low, middle
    for i = low, high - 1 do
        local item, other = values.to_nil(from[left]), values.to_nil(from[right])
        if left < middle and (right >= high or not values.is_less(other, item)) then
            into[i], left = from[left], left + 1
        else
            into[i], right = from[right], right + 1
        end
    end
end

-- Merge sort, stable like Python's; no order of the items makes it slow.
function builtins.sorted(_, list)
    if values.kind_of(list) ~= 'array' then values.fail('sorted() takes a list, not ' .. values.kind_of(list)) end
    charge(#list * (1 + 2.5 * math.log(#list + 1)))
    local items, spare, width = json.list(), json.list(), 1
    for i = 1, #list do items[i] = list[i] end
    while width < #list do
        for low = 1, #list, width * 2 do
            merge(items, spare, low, math.min(low + width, #list + 1), math.min(low + width * 2, #list + 1))
        end
        items, spare, width = spare, items, width * 2
    end
    return items
end

function builtins.sqrt(_, value)
    if values.check_number(value) < 0 then values.fail('no square root of ' .. values.describe(value)) end
    return math.sqrt(value)
end

function builtins.exp(_, value) return values.check_finite(math.exp(values.check_number(value))) end

function builtins.log(_, value)
    if values.check_number(value) <= 0 then values.fail('no logarithm of ' .. values.describe(value)) end
    return math.log(value)
end

function builtins.sign(_, value) return values.check_number(value) > 0 and 1 or value < 0 and -1 or 0 end

function builtins.fail(_, message) values.fail(values.check_text(message)) end

function builtins.random(ctx)
    charge(8)
    return random.make_number(ctx)
end

function builtins.random_token(ctx, length)
    values.check_whole(length)
    if length < 1 or length > MAX_TOKEN then values.fail('random_token() takes a length from 1 to ' .. MAX_TOKEN) end
    charge(length * 20)
    return random.make_token(ctx, length)
end

return builtins
