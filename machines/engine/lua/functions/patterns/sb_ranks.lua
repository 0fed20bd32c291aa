-- needs: arguments, pattern_keys, replies, scoreboards
-- sb_ranks: reads a scoreboard: the first places, that of one member, or those around it. Equal scores share a rank, and the
-- next rank is lower by the number of them.
-- KEYS:    1 root of the board
-- ARGV:    1 all | hour | day | week | fade · 2 half-life (ms; 0 for a board that does not fade) · 3 earlier periods that
--          are kept (0 to 400) · 4 time it is read for (ms, or '') · 5 top | around · 6 how many (1 to 1000); on either side
--          of the member (0 to 500) · 7 how many periods together (1 to 400) · 8 the member
-- Returns: {OK, rank, member, score, tied 1|0, the same of the next, ...}; nothing for a member that is not on the board ·
--          {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log(board) + places); several periods: O(all their members * log), 20000 at most
local MAX_PLACES, MAX_AROUND, MAX_SPAN, MAX_UNION = 1000, 500, 400, 20000
local call = redis.call

-- Reads one more on either side, which tells whether the outermost share their rank with it.
local function read_places(key, first, last, factor)
    local from = math.max(0, first - 1)
    local found = call('ZREVRANGE', key, from, last + 1, 'WITHSCORES')
    local reply, rank, n = { replies.OK }, nil, 1
    local score, before = nil, found[(first - from) * 2]
    for i = (first - from) * 2 + 1, math.min(#found, (last - from + 1) * 2), 2 do
        score, before = found[i + 1], score or before
        if not rank then
            rank = first == 0 and 1 or call('ZCOUNT', key, '(' .. score, '+inf') + 1
        elseif score ~= before then
            rank = from + (i + 1) / 2
        end
        reply[n + 1], reply[n + 2] = rank, found[i]
        reply[n + 3] = factor == 1 and score or scoreboards.format(tonumber(score) * factor)
        reply[n + 4] = (score == before or score == found[i + 3]) and 1 or 0
        n = n + 4
    end
    return reply
end

local function read_board(key, what, count, member, factor)
    if what == 'top' then return read_places(key, 0, count - 1, factor) end
    local position = call('ZREVRANK', key, member)
    if not position then return { replies.OK } end
    return read_places(key, math.max(0, position - count), position + count, factor)
end

-- Adds several periods up, in a key that is deleted before the call ends.
local function read_union(board, root, span, ...)
    local key, found, members = pattern_keys.board_span(root), {}, 0
    for before = 0, span - 1 do
        found[before + 1] = scoreboards.make_key(board, root, before)
        members = members + call('ZCARD', found[before + 1])
    end
    if members > MAX_UNION then
        return { replies.BAD_ARGUMENT, 'these periods have ' .. members .. ' members; ' .. MAX_UNION .. ' is the most' }
    end
    if call('EXISTS', key) == 1 then error({ err = 'ERR the key for the sum of periods exists' }) end
    call('ZUNIONSTORE', key, #found, unpack(found))
    local reply = read_board(key, ...)
    call('DEL', key)
    return reply
end

return function(KEYS, ARGV)
    local board, what, member = scoreboards.parse(ARGV), ARGV[5] or '', ARGV[8] or ''
    arguments.need(what == 'top' or what == 'around', 'the kinds are top and around')
    local least, most = 0, MAX_AROUND
    if what == 'top' then least, most = 1, MAX_PLACES end
    local count = arguments.need_count('how many', ARGV[6], least, most)
    local span = arguments.need_count('how many periods', ARGV[7], 1, MAX_SPAN)
    arguments.need(what == 'top' or member ~= '', 'the member is missing')
    if span > 1 then return read_union(board, KEYS[1], span, what, count, member, 1) end
    local _, age = scoreboards.read_scale(board, KEYS[1])
    return read_board(scoreboards.make_key(board, KEYS[1]), what, count, member, 2 ^ -age)
end
