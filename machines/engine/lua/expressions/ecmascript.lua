-- needs: json, strings, values, work_budget
-- ECMAScript's truth, conversions and comparisons, where Python's rules differ. `undefined`, `null` and NaN are all nil
-- here; a result of NaN or infinity fails where a number is needed.
local ecmascript = {}

local charge = work_budget.charge

local MAX_NUMERAL = 400 -- characters of a number written as text
local PLACES = 21 -- numbers below 10^21 are written without an exponent
local DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

local function is_table(value)
    return type(value) == 'table' and value ~= json.null
end

function ecmascript.truthy(_, value)
    return value ~= nil and value ~= false and value ~= 0 and value ~= '' and value ~= json.null
end

function ecmascript.typeof(_, value)
    if value == nil or value == json.null then return 'undefined' end
    local kind = type(value)
    return kind == 'table' and 'object' or kind
end

-- The place of the decimal point among the digits decides the format (Number::toString).
local function format_number(number)
    local short
    charge(12)
    for digits = 14, 16 do
        short = string.format('%.' .. digits .. 'e', number)
        if tonumber(short) == number then break end
    end
    local sign, lead, rest, exponent = string.match(short, '^(-?)(%d)%.?(%d*)e([+-]%d+)$')
    local digits, point = string.gsub(lead .. rest, '0+$', ''), tonumber(exponent) + 1
    if #digits <= point and point <= PLACES then return sign .. digits .. string.rep('0', point - #digits) end
    if point > 0 and point <= PLACES then
        return sign .. string.sub(digits, 1, point) .. '.' .. string.sub(digits, point + 1)
    end
    if point > -6 and point <= 0 then return sign .. '0.' .. string.rep('0', -point) .. digits end
    local tail = #digits > 1 and '.' .. string.sub(digits, 2) or ''
    return sign .. string.sub(digits, 1, 1) .. tail .. 'e' .. (point > 0 and '+' or '-') .. math.abs(point - 1)
end

local to_text

local function items_to_text(list, separator)
    local parts, bytes = {}, 0
    charge(#list * 3)
    for i = 1, #list do
        local item = values.to_nil(list[i])
        parts[i] = item == nil and '' or to_text(item)
        bytes = bytes + #parts[i] + #separator
        values.check_length(bytes)
    end
    charge(bytes / 200)
    return table.concat(parts, separator)
end

to_text = function(value)
    if type(value) == 'string' then return value end
    if value == nil or value == json.null then return 'undefined' end
    if type(value) == 'boolean' then return value and 'true' or 'false' end
    if type(value) == 'number' then return value == 0 and '0' or format_number(value) end
    if json.is_array(value) then return items_to_text(value, ',') end
    return '[object Object]'
end

function ecmascript.to_text(_, value) return to_text(value) end

function ecmascript.joined(_, list, separator)
    if values.kind_of(list) ~= 'array' then values.fail('joined() takes a list, not ' .. values.kind_of(list)) end
    return items_to_text(list, separator == nil and ',' or to_text(separator))
end

-- Converts to a number; nil for ECMAScript's NaN.
local function to_number(value)
    if type(value) == 'number' then return value end
    if type(value) == 'boolean' then return value and 1 or 0 end
    if value == nil or value == json.null then return nil end
    local text = strings.strip(to_text(value))
    if text == '' then return 0 end
    if #text > MAX_NUMERAL then return nil end
    if string.match(text, '^0[xX]%x+$') then return tonumber(text) end
    local number = string.match(text, '^[+-]?[%d.]+[eE]?[+-]?%d*$') and tonumber(text)
    if number and number - number == 0 then return number end
end

function ecmascript.is_nan(_, value) return to_number(value) == nil end

local function to_primitive(value)
    return is_table(value) and to_text(value) or value
end

function ecmascript.plus(_, a, b)
    a, b = to_primitive(a), to_primitive(b)
    if type(a) == 'string' or type(b) == 'string' then
        local left, right = to_text(a), to_text(b)
        values.charge_join(#left + #right)
        return left .. right
    end
    local left, right = to_number(a), to_number(b)
    if not left or not right then values.fail('cannot add ' .. values.kind_of(a) .. ' and ' .. values.kind_of(b)) end
    return values.check_finite(left + right)
end

function ecmascript.remainder(_, a, b)
    if values.check_number(b) == 0 then values.fail('division by zero') end
    return math.fmod(values.check_number(a), b)
end

-- ECMAScript's a == b: next to a number, texts and booleans count as numbers.
function ecmascript.loosely_equal(_, a, b)
    if a == nil or b == nil then return a == b end
    if type(a) == type(b) then return values.is_equal(a, b) end
    a, b = to_primitive(a), to_primitive(b)
    if type(a) == 'string' and type(b) == 'string' then return a == b end
    local left, right = to_number(a), to_number(b)
    return left ~= nil and left == right
end

-- Compares two texts as texts, anything else as numbers; a comparison with NaN is false.
local function make_comparison(compare)
    return function(_, a, b)
        a, b = to_primitive(a), to_primitive(b)
        if type(a) == 'string' and type(b) == 'string' then
            return compare(strings.is_before(a, b) and -1 or a == b and 0 or 1, 0)
        end
        local left, right = to_number(a), to_number(b)
        return left ~= nil and right ~= nil and compare(left, right)
    end
end

ecmascript.less = make_comparison(function(a, b) return a < b end)
ecmascript.more = make_comparison(function(a, b) return a > b end)
ecmascript.at_most = make_comparison(function(a, b) return a <= b end)
ecmascript.at_least = make_comparison(function(a, b) return a >= b end)

-- Parses the whole number at the start of a text; nil when there is none.
function ecmascript.parse_int(_, value, radix)
    if type(value) == 'string' then charge(#value / 12) end
    local sign, text = string.match(strings.strip(to_text(value)), '^([+-]?)(.*)$')
    local base = radix == nil and 0 or values.check_whole(radix)
    if (base == 0 or base == 16) and string.match(text, '^0[xX]') then
        base, text = 16, string.sub(text, 3)
    end
    base = base == 0 and 10 or base
    if base < 2 or base > 36 then return nil end
    local digits = string.match(string.lower(text), '^[' .. string.sub(DIGITS, 1, base) .. ']+')
    if not digits then return nil end
    if #digits > MAX_NUMERAL then values.fail('a number of more than ' .. MAX_NUMERAL .. ' digits') end
    local number = base == 10 and tonumber(digits) or 0
    if base ~= 10 then
        charge(#digits * 3)
        for i = 1, #digits do
            number = number * base + string.find(DIGITS, string.sub(digits, i, i), 1, true) - 1
        end
    end
    return values.check_finite(sign == '-' and -number or number)
end

-- Parses the number at the start of a text; nil when there is none.
function ecmascript.parse_float(_, value)
    local text = strings.strip(to_text(value))
    local sign, rest = string.match(string.sub(text, 1, MAX_NUMERAL), '^([+-]?)(.*)$')
    local mantissa = string.match(rest, '^%d+%.?%d*') or string.match(rest, '^%.%d+')
    if not mantissa then return nil end
    local exponent = string.match(rest, '^[eE][+-]?%d+', #mantissa + 1) or ''
    local number = values.check_finite(tonumber(mantissa .. exponent))
    return sign == '-' and -number or number
end

function ecmascript.fixed(_, number, digits)
    digits = digits == nil and 0 or values.check_whole(digits)
    if digits < 0 or digits > 99 then values.fail('fixed() takes 0 to 99 digits, not ' .. values.describe(digits)) end
    return string.format('%.' .. digits .. 'f', values.check_number(number))
end

function ecmascript.json(_, value)
    local text = json.encode(value)
    values.check_length(#text)
    return text
end

function ecmascript.parse_json(_, text)
    return values.to_nil(json.decode(values.check_text(text)))
end

return ecmascript
