-- needs: work_budget
-- UTF-8 strings: length, order and parts by characters, in time that grows with the length only.
local strings = {}

local CHARACTER = '[%z\1-\127\192-\255][\128-\191]*'

local byte, find, sub = string.byte, string.find, string.sub
local charge = work_budget.charge

local CHUNK = 256 -- bytes compared at a time

-- a < b by bytes, which in UTF-8 is the order of code points. Lua's own `<` depends on the locale of the server.
function strings.is_before(a, b)
    if a == b then return false end
    local shorter, from = math.min(#a, #b), 1
    if shorter > CHUNK then
        charge(shorter / 40)
        while sub(a, from, from + CHUNK - 1) == sub(b, from, from + CHUNK - 1) do from = from + CHUNK end
    end
    for i = from, shorter do
        local x, y = byte(a, i), byte(b, i)
        if x ~= y then
            if i - from > 8 then charge((i - from) / 2) end
            return x < y
        end
    end
    if shorter - from > 8 then charge((shorter - from) / 2) end
    return #a < #b
end

-- Whether Lua's `<` orders by bytes under the locale of the server: every language sorts `a` before `B`, bytes do not.
local SORTS_BY_BYTES = 'B' < 'a' and '_' < 'a' and 'z' < '\195\164'

-- Sorts a list of strings in place.
function strings.sort(list)
    if SORTS_BY_BYTES then return table.sort(list) end
    charge(#list * 4 * math.log(#list + 1))
    table.sort(list, strings.is_before)
end

function strings.length(text)
    charge(#text / 12)
    local _, continuing = string.gsub(text, '[\128-\191]', '')
    return #text - continuing
end

-- Answers the character at a position from 1; nil past the end.
function strings.character_at(text, position)
    if position < 1 or position > #text then return nil end
    charge(#text / 4)
    if not find(text, '[\128-\255]') then return sub(text, position, position) end
    local count = 0
    for character in string.gmatch(text, CHARACTER) do
        count = count + 1
        if count == position then return character end
    end
end

-- Cuts a text to its first `limit` bytes, without half a character at the end.
function strings.cut_head(text, limit)
    if #text <= limit then return text end
    local stop = limit
    while stop > 0 and find(text, '^[\128-\191]', stop + 1) do stop = stop - 1 end
    return sub(text, 1, stop)
end

-- Cuts a text to its last `limit` bytes, without half a character at the start.
function strings.cut_tail(text, limit)
    if #text <= limit then return text end
    local start = #text - limit + 1
    while find(text, '^[\128-\191]', start) do start = start + 1 end
    return sub(text, start)
end

local VALID_CHARACTERS = {
    '^[%z\1-\127]+', '^[\194-\223][\128-\191]', '^\224[\160-\191][\128-\191]', '^[\225-\236\238\239][\128-\191][\128-\191]',
    '^\237[\128-\159][\128-\191]', '^\240[\144-\191][\128-\191][\128-\191]', '^[\241-\243][\128-\191][\128-\191][\128-\191]',
    '^\244[\128-\143][\128-\191][\128-\191]',
}

local function skip_character(text, at)
    for _, pattern in ipairs(VALID_CHARACTERS) do
        local _, stop = find(text, pattern, at)
        if stop then return stop + 1 end
    end
end

-- Tells whether the text is UTF-8 (RFC 3629).
function strings.is_valid(text)
    charge(#text / 12)
    local at = find(text, '[\128-\255]')
    if at then charge(#text - at) end
    while at and at <= #text do
        at = skip_character(text, at)
        if not at then return false end
    end
    return true
end

function strings.strip(text)
    charge(#text / 12)
    local first = find(text, '%S')
    if not first then return '' end
    local last = #text
    while find(text, '^%s', last) do last = last - 1 end
    charge(#text - last)
    return sub(text, first, last)
end

return strings
