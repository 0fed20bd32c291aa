-- needs: strings, work_budget
-- JSON with what the bundled decoder loses: empty arrays stay arrays, and invalid JSON is refused. A null inside a table is
-- json.null; arrays carry the metatable json.array.
local json = { null = {}, array = { __name = 'array' } }

local MAX_DEPTH = 32
local MAX_KEPT = 1000
local MAX_EXACT = 2 ^ 53
local SHORT = 1e14 -- tostring() prints whole numbers below this digit for digit
local ESCAPES = { b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['\\'] = '\\', ['/'] = '/' }
local QUOTED = { ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t' }

local find, match, sub, byte, char, format = string.find, string.match, string.sub, string.byte, string.char, string.format
local getmetatable, type, charge = getmetatable, type, work_budget.charge

-- Costs in units of work.
local ITEM, VALUE, PAIR, COMPARISON, FRACTION, ESCAPE = 4, 3, 8, 1, 20, 2
local EVERY = 64 -- items per charge
local SHORT_TEXT = 64 -- bytes

function json.list(items)
    return setmetatable(items or {}, json.array)
end

function json.is_array(value)
    return getmetatable(value) == json.array
end

local function fail(text, at, what)
    error({ sb = format('not JSON at byte %d: %s', at, what .. (at > #text and ' (the text ends here)' or '')) })
end

local function utf8_char(code)
    if code < 0x80 then return char(code) end
    if code < 0x800 then return char(0xC0 + math.floor(code / 64), 0x80 + code % 64) end
    if code < 0x10000 then
        return char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
    end
    return char(0xF0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64,
        0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

-- Reads one \uXXXX escape (or a surrogate pair) whose 'u' is at `at`; answers the character and the next position.
local function unicode_escape(text, at)
    local hex = string.match(text, '^%x%x%x%x', at + 1)
    if not hex then fail(text, at, 'a \\u escape takes four hex digits') end
    local code, next_at = tonumber(hex, 16), at + 5
    if code == 0 then fail(text, at, 'a NUL character is not allowed') end
    if code >= 0xD800 and code <= 0xDBFF then
        local low = string.match(text, '^\\u(%x%x%x%x)', next_at)
        low = low and tonumber(low, 16)
        if not low or low < 0xDC00 or low > 0xDFFF then fail(text, at, 'half a surrogate pair') end
        code, next_at = 0x10000 + (code - 0xD800) * 1024 + (low - 0xDC00), next_at + 6
    elseif code >= 0xDC00 and code <= 0xDFFF then
        fail(text, at, 'half a surrogate pair')
    end
    return utf8_char(code), next_at
end

local function read_string(text, at)
    local close = find(text, '["\\%c]', at + 1)
    if close and byte(text, close) == 34 then return sub(text, at + 1, close - 1), close + 1 end
    local parts, from = {}, at + 1
    while true do
        charge(ESCAPE)
        close = find(text, '["\\%c]', from)
        if not close then fail(text, #text + 1, 'a string has no end') end
        parts[#parts + 1] = sub(text, from, close - 1)
        local mark = byte(text, close)
        if mark == 34 then return table.concat(parts), close + 1 end
        if mark == 127 then
            parts[#parts + 1], from = char(127), close + 1
        elseif mark ~= 92 then
            fail(text, close, 'a control character in a string')
        else
            local letter = sub(text, close + 1, close + 1)
            if letter == 'u' then
                parts[#parts + 1], from = unicode_escape(text, close + 1)
            elseif ESCAPES[letter] then
                parts[#parts + 1], from = ESCAPES[letter], close + 2
            else
                fail(text, close, 'an unknown escape')
            end
        end
    end
end

local function read_number(text, at)
    local _, stop = find(text, '^-?%d+', at)
    if not stop then fail(text, at, 'a value was expected') end
    if find(text, '^-?0%d', at) then fail(text, at, 'a number with a leading zero') end
    local _, fraction = find(text, '^%.%d+', stop + 1)
    stop = fraction or stop
    local _, exponent = find(text, '^[eE][+-]?%d+', stop + 1)
    stop = exponent or stop
    local number = tonumber(sub(text, at, stop))
    if fraction or exponent then charge(FRACTION) end
    if number ~= number or number == math.huge or number == -math.huge then fail(text, at, 'a number out of range') end
    -- A larger id from a 64-bit counter would silently become its neighbour.
    if not fraction and not exponent and (number >= MAX_EXACT or number <= -MAX_EXACT) then
        fail(text, at, 'an integer past 2^53; send it as text')
    end
    return number, stop + 1
end

local read_value

local function skip(text, at)
    return find(text, '[^ \t\r\n]', at) or #text + 1
end

local function check_depth(text, at, depth)
    if depth > MAX_DEPTH then fail(text, at, 'nested deeper than ' .. MAX_DEPTH) end
end

-- Reads a short whole number, the most common item of an array: answers its digits and the position of the next separator,
-- or nil for any other item.
local function read_short_whole(text, at)
    local first = byte(text, at)
    if not first or first < 48 or first > 57 then return nil end
    local digits, after = match(text, '^(%d+)[ \t\r\n]*()[,%]]', at)
    if digits and #digits < 16 and (first > 48 or #digits == 1) then return digits, after end
end

local function read_array(text, at, depth)
    check_depth(text, at, depth)
    local items, count = json.list(), 0
    at = skip(text, at + 1)
    if byte(text, at) == 93 then return items, at + 1 end
    while true do
        count = count + 1
        if count % EVERY == 0 then charge(EVERY * ITEM) end
        local digits, after = read_short_whole(text, at)
        if digits then
            items[count], at = tonumber(digits), after
        else
            charge(VALUE)
            items[count], at = read_value(text, at, depth + 1)
            at = skip(text, at)
        end
        local mark = byte(text, at)
        if mark == 93 then
            charge(count % EVERY * ITEM)
            return items, at + 1
        end
        if mark ~= 44 then fail(text, at, 'a comma or ] was expected') end
        at = skip(text, at + 1)
    end
end

local function read_object(text, at, depth)
    check_depth(text, at, depth)
    local fields = {}
    at = skip(text, at + 1)
    if byte(text, at) == 125 then return fields, at + 1 end
    while true do
        charge(PAIR)
        if byte(text, at) ~= 34 then fail(text, at, 'a key in double quotes was expected') end
        local key
        key, at = read_string(text, at)
        if fields[key] ~= nil then fail(text, at, 'the key "' .. key .. '" stands twice') end
        at = skip(text, at)
        if byte(text, at) ~= 58 then fail(text, at, 'a colon was expected') end
        fields[key], at = read_value(text, skip(text, at + 1), depth + 1)
        at = skip(text, at)
        local mark = byte(text, at)
        if mark == 125 then return fields, at + 1 end
        if mark ~= 44 then fail(text, at, 'a comma or } was expected') end
        at = skip(text, at + 1)
    end
end

local LITERALS = { [116] = { 'true', true }, [102] = { 'false', false }, [110] = { 'null', json.null } }

read_value = function(text, at, depth)
    local mark = byte(text, at)
    if mark == 34 then return read_string(text, at) end
    if mark == 123 then return read_object(text, at, depth) end
    if mark == 91 then return read_array(text, at, depth) end
    local word = LITERALS[mark]
    if word then
        if sub(text, at, at + #word[1] - 1) ~= word[1] then fail(text, at, 'a value was expected') end
        return word[2], at + #word[1]
    end
    return read_number(text, at)
end

-- Decodes a whole JSON text; throws {sb = message}. `depth`: the level at which the value will be nested, 1 by default.
function json.decode(text, depth)
    charge(6 + #text / 8)
    local value, at = read_value(text, skip(text, 1), depth or 1)
    at = skip(text, at)
    if at <= #text then fail(text, at, 'something follows the value') end
    return value
end

-- Decodes a text from outside, which may be invalid UTF-8: other readers of the stored text would see another value.
function json.read(text, depth)
    if not strings.is_valid(text) then error({ sb = 'not JSON: the text is not UTF-8' }) end
    return json.decode(text, depth)
end

local function escape(letter)
    return QUOTED[letter] or format('\\u%04x', byte(letter))
end

-- One pattern for all three is cheapest for a short text, three plain searches for a long one.
local function needs_escapes(text)
    if #text <= SHORT_TEXT then return find(text, '[%c"\\]') end
    return find(text, '"', 1, true) or find(text, '\\', 1, true) or find(text, '%c')
end

function json.quote(text)
    if #text > SHORT_TEXT then charge(#text / 16) end
    if needs_escapes(text) then
        local escapes
        text, escapes = string.gsub(text, '[%c"\\]', escape)
        charge(escapes * ESCAPE)
    end
    return '"' .. text .. '"'
end

-- Formatting a number is expensive and numbers repeat (counts, versions, the current second), so a thousand are cached.
local written, kept_count = {}, 0

local function keep(value, text)
    if kept_count >= MAX_KEPT then written, kept_count = {}, 0 end
    written[value], kept_count = text, kept_count + 1
    return text
end

function json.number(value)
    local known = written[value]
    if known then return known end
    if value % 1 == 0 and value < SHORT and value > -SHORT then return keep(value, value + 0 .. '') end
    if value ~= value or value == math.huge or value == -math.huge then
        error({ sb = 'the result is not a finite number' })
    end
    if value % 1 == 0 and value < MAX_EXACT and value > -MAX_EXACT then return format('%.0f', value) end
    local text
    charge(FRACTION)
    for digits = 15, 17 do
        text = format('%.' .. digits .. 'g', value)
        if tonumber(text) == value then break end
    end
    return find(text, '[.e]') and text or text .. '.0'
end

local function encode_table(value, depth)
    if depth > MAX_DEPTH then error({ sb = 'nested deeper than ' .. MAX_DEPTH }) end
    local parts = {}
    if json.is_array(value) then
        charge(ITEM)
        for i = 1, #value do
            if i % EVERY == 0 then charge(EVERY * ITEM) end
            parts[i] = json.encode(value[i], depth + 1)
        end
        charge(#value % EVERY * ITEM)
        return '[' .. table.concat(parts, ',') .. ']'
    end
    local names = {}
    for name in pairs(value) do names[#names + 1] = name end
    charge(ITEM + #names * (PAIR + COMPARISON * math.log(#names + 1)))
    strings.sort(names)
    for i, name in ipairs(names) do parts[i] = json.quote(name) .. ':' .. json.encode(value[name], depth + 1) end
    return '{' .. table.concat(parts, ',') .. '}'
end

-- Encodes a value as JSON, nil as null. Keys are sorted, so that equal values give equal texts.
function json.encode(value, depth)
    local kind = type(value)
    if kind == 'string' then return json.quote(value) end
    if kind == 'number' then return json.number(value) end
    if kind == 'boolean' then return value and 'true' or 'false' end
    if kind == 'table' and value ~= json.null then return encode_table(value, depth or 1) end
    return 'null'
end

return json
