-- needs: strings
-- Pages of a sorted set cut by (score, member): they stay put while others come and go.
local keyset_pages = {}

local call = redis.call

-- How many members of the index stand before (score, id); those of one score are in the order of their bytes.
local function rank(index, score, id)
    local low = call('ZCOUNT', index, '-inf', '(' .. score)
    local high = call('ZCOUNT', index, '-inf', score)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if strings.before(call('ZRANGE', index, middle, middle)[1], id) then low = middle + 1 else high = middle end
    end
    return low
end

-- How many members stand before the cursor {score, id} or at it; its score is '' for the beginning.
function keyset_pages.passed(index, cursor)
    if cursor.score == '' then return 0 end
    local first = rank(index, cursor.score, cursor.id)
    local at = call('ZRANGE', index, first, first, 'WITHSCORES')
    if at[1] == cursor.id and at[2] == cursor.score then first = first + 1 end
    return first
end

-- Lowest first: the members behind the cursor, up to the score `last`.
function keyset_pages.older(index, cursor, last, limit)
    local first = keyset_pages.passed(index, cursor)
    local stop = math.min(first + limit, call('ZCOUNT', index, '-inf', last))
    if stop <= first then return {} end
    return call('ZRANGE', index, first, stop - 1, 'WITHSCORES')
end

-- Highest first: the members before the cursor, or from the score `last` down.
function keyset_pages.newer(index, cursor, last, limit)
    local count = cursor.score ~= '' and rank(index, cursor.score, cursor.id) or call('ZCOUNT', index, '-inf', last)
    if count == 0 then return {} end
    local from = call('ZCARD', index) - count
    return call('ZREVRANGE', index, from, from + limit - 1, 'WITHSCORES')
end

return keyset_pages
