-- needs: work_budget
-- Texts are UTF-8 and are counted, cut and ordered by characters, in time that grows with their length only.
local strings = {}

local CHARACTER = '[%z\1-\127\192-\255][\128-\191]*'

local byte, find, sub = string.byte, string.find, string.sub
local charge = work_budget.charge

local CHUNK = 256 -- bytes compared at a time

-- a < b by bytes, which in UTF-8 is by code points. Lua's own `<` asks the locale the server was started in.
function strings.before(a, b)
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

-- Does Lua's own `<` order as texts.before does? It asks the locale the server was started in: every language puts `a`
-- before `B`, and only bytes do not.
local by_bytes = 'B' < 'a' and '_' < 'a' and 'z' < '\195\164'

-- Sorts a list of texts in place.
function strings.sort(list)
    if by_bytes then return table.sort(list) end
    charge(#list * 4 * math.log(#list + 1))
    table.sort(list, strings.before)
end

function strings.length(text)
    charge(#text / 12)
    local _, continuing = string.gsub(text, '[\128-\191]', '')
    return #text - continuing
end

-- The character at a position from 1; nil where there is none.
function strings.at(text, position)
    if position < 1 or position > #text then return nil end
    charge(#text / 4)
    if not find(text, '[\128-\255]') then return sub(text, position, position) end
    local count = 0
    for character in string.gmatch(text, CHARACTER) do
        count = count + 1
        if count == position then return character end
    end
end

-- The beginning of a text, at most `most` bytes, without half a character at its end.
function strings.cut(text, most)
    if #text <= most then return text end
    local stop = most
    while stop > 0 and find(text, '^[\128-\191]', stop + 1) do stop = stop - 1 end
    return sub(text, 1, stop)
end

-- The end of a text, likewise.
function strings.tail(text, most)
    if #text <= most then return text end
    local start = #text - most + 1
    while find(text, '^[\128-\191]', start) do start = start + 1 end
    return sub(text, start)
end

local CHARACTERS = {
    '^[%z\1-\127]+', '^[\194-\223][\128-\191]', '^\224[\160-\191][\128-\191]', '^[\225-\236\238\239][\128-\191][\128-\191]',
    '^\237[\128-\159][\128-\191]', '^\240[\144-\191][\128-\191][\128-\191]', '^[\241-\243][\128-\191][\128-\191][\128-\191]',
    '^\244[\128-\143][\128-\191][\128-\191]',
}

local function next_character(text, at)
    for _, pattern in ipairs(CHARACTERS) do
        local _, stop = find(text, pattern, at)
        if stop then return stop + 1 end
    end
end

-- Is it UTF-8 (RFC 3629)?
function strings.valid(text)
    charge(#text / 12)
    local at = find(text, '[\128-\255]')
    if at then charge(#text - at) end
    while at and at <= #text do
        at = next_character(text, at)
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
