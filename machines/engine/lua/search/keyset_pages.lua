-- needs: strings
-- Keyset pagination of a sorted set by (score, member): pages stay stable while members come and go.
local keyset_pages = {}

local call = redis.call

-- Counts the members before (score, id); members of one score are in the order of their bytes.
local function count_before(index, score, id)
    local low = call('ZCOUNT', index, '-inf', '(' .. score)
    local high = call('ZCOUNT', index, '-inf', score)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if strings.is_before(call('ZRANGE', index, middle, middle)[1], id) then low = middle + 1 else high = middle end
    end
    return low
end

-- Counts the members up to the cursor {score, id}; the score '' is the beginning.
function keyset_pages.count_passed(index, cursor)
    if cursor.score == '' then return 0 end
    local first = count_before(index, cursor.score, cursor.id)
    local at = call('ZRANGE', index, first, first, 'WITHSCORES')
    if at[1] == cursor.id and at[2] == cursor.score then first = first + 1 end
    return first
end

-- Lowest first: reads the members behind the cursor, up to the score `last`.
function keyset_pages.read_ascending(index, cursor, last, limit)
    local first = keyset_pages.count_passed(index, cursor)
    local stop = math.min(first + limit, call('ZCOUNT', index, '-inf', last))
    if stop <= first then return {} end
    return call('ZRANGE', index, first, stop - 1, 'WITHSCORES')
end

-- Highest first: reads the members before the cursor, or from the score `last` down.
function keyset_pages.read_descending(index, cursor, last, limit)
    local count = cursor.score ~= '' and count_before(index, cursor.score, cursor.id) or call('ZCOUNT', index, '-inf', last)
    if count == 0 then return {} end
    local from = call('ZCARD', index) - count
    return call('ZREVRANGE', index, from, from + limit - 1, 'WITHSCORES')
end

return keyset_pages
