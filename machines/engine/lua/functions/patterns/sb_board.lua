-- needs: arguments, pattern_keys, replies, scoreboards
-- sb_board: changes a scoreboard: adds points, sets scores, removes members, or empties it. Beyond its size the lowest
-- members are dropped.
-- KEYS:    1 root of the board
-- ARGV:    1 all | hour | day | week | fade · 2 half-life (ms; 0 for a board that does not fade) · 3 earlier periods that
--          are kept (0 to 400) · 4 now (ms, or '') · 5 add | set | remove | reset · 6 most members (1 to 10000) · 7 a member
--          · 8 its points (below 2^53 either way); then further pairs, or for remove further members (1 to 1000)
-- Returns: {OK, how many of the given members are on the board, or were removed} · {OK, 1, rank, score, tied 1|0} of a
--          single member on the board after add and set · {BADARG, why} · {BADARG, why, 'overflow'} of
--          a score that would be too large
-- Notifies: nothing
-- Cost:    O(members * log(board)); O(board) when a fading board is scaled back, every 512 half-lives
local MAX_MEMBERS, MAX_SIZE, MAX_BYTES = 1000, 10000, 2048
local call = redis.call

-- false for NaN
local function is_within(score, limit) return score and score >= -limit and score <= limit end

-- From ARGV[7] on, every `step`th argument is a member.
local function check_members(ARGV, step)
    local count = (#ARGV - 6) / step
    arguments.need(count % 1 == 0 and count >= 1 and count <= MAX_MEMBERS, 'there are 1 to ' .. MAX_MEMBERS .. ' members')
    for i = 7, #ARGV, step do
        arguments.need(#ARGV[i] > 0 and #ARGV[i] <= MAX_BYTES, 'a member has 1 to ' .. MAX_BYTES .. ' bytes')
        local is_score = step == 1 or is_within(tonumber(ARGV[i + 1]), scoreboards.MAX_SCORE)
        arguments.need(is_score, 'a score is a number between -2^53 and 2^53')
    end
end

-- Computes the new scores in the given order, each once; nil when one would no longer be exact.
local function compute_scores(ARGV, key, shrunk, factor)
    local held, order = {}, {}
    for i = 7, #ARGV, 2 do
        local member, points = ARGV[i], tonumber(ARGV[i + 1]) * factor
        if held[member] == nil then
            order[#order + 1] = member
            held[member] = tonumber(call('ZSCORE', key, member) or 0) * shrunk
        end
        held[member] = ARGV[5] == 'add' and held[member] + points or points
        if not is_within(held[member], scoreboards.MAX_SCORE * factor) then return nil end
    end
    return held, order
end

-- Multiplies all scores by 2^-shift. Members with next to nothing are dropped: their digits would be lost.
local function scale_back(key, shift)
    if shift - scoreboards.WORTHLESS_AFTER > 1000 then return call('DEL', key) end
    local least = scoreboards.format(2 ^ (shift - scoreboards.WORTHLESS_AFTER))
    call('ZREMRANGEBYSCORE', key, '(-' .. least, '(' .. least)
    call('ZUNIONSTORE', key, 1, key, 'WEIGHTS', scoreboards.format(2 ^ -shift))
end

-- A board of a period expires with the period; a fading one is extended by each change, which is written only when it
-- matters.
local function extend_life(board, root, key, is_new)
    if board.kind == 'fade' then
        if is_new or board.scaled or board.now - board.touched > 10 * board.half then
            local ttl = scoreboards.compute_ttl(board)
            call('PEXPIRE', key, ttl)
            call('SET', pattern_keys.board_epoch(root), string.format('%.0f %.0f', board.epoch, board.now), 'PX', ttl)
        end
    elseif is_new and board.kind ~= 'all' then
        call('PEXPIRE', key, scoreboards.compute_ttl(board))
    end
end

-- Writes the scores; answers how many of the given members are on the board, and the first score as written.
local function write_scores(board, root, key, held, order, size)
    local words = {}
    for i, member in ipairs(order) do words[i * 2 - 1], words[i * 2] = scoreboards.format(held[member]), member end
    local is_new = call('ZADD', key, unpack(words)) > 0
    local left_out = is_new and call('ZCARD', key) - size or 0
    if left_out > 0 then call('ZREMRANGEBYRANK', key, 0, left_out - 1) end
    extend_life(board, root, key, is_new)
    if left_out <= 0 then return #order, words[1] end
    local standing = 0
    for _, member in ipairs(order) do
        if call('ZSCORE', key, member) then standing = standing + 1 end
    end
    return standing, words[1]
end

-- Builds the reply for a single member.
local function build_place(key, score, text, factor)
    local behind, level = call('ZCOUNT', key, '(' .. text, '+inf'), call('ZCOUNT', key, text, text)
    return { replies.OK, 1, behind + 1, factor == 1 and text or scoreboards.format(score / factor), level > 1 and 1 or 0 }
end

local function change_scores(board, root, ARGV, size)
    local key, shift = scoreboards.make_key(board, root), 0
    local epoch, age, touched = scoreboards.read_scale(board, root)
    if age > scoreboards.RESCALE_AFTER then shift = math.floor(age) end
    board.touched = touched
    board.epoch, board.scaled = epoch + shift * board.half, shift > 0
    local shrunk = shift - scoreboards.WORTHLESS_AFTER > 1000 and 0 or 2 ^ -shift
    local factor = 2 ^ (shift > 0 and (board.now - board.epoch) / board.half or age)
    local held, order = compute_scores(ARGV, key, shrunk, factor)
    if not held then
        return { replies.BAD_ARGUMENT, 'a score would not be between -2^53 and 2^53', 'overflow' }
    end
    if board.scaled then scale_back(key, shift) end
    local standing, text = write_scores(board, root, key, held, order, size)
    if #order > 1 or standing == 0 then return { replies.OK, standing } end
    return build_place(key, held[order[1]], text, factor)
end

local function remove_members(board, root, ARGV)
    local gone = {}
    local found = scoreboards.list_keys(board, root)
    for _, key in ipairs(found) do call('ZCARD', key) end -- throws before the first removal
    for _, key in ipairs(found) do
        for i = 7, #ARGV do
            if call('ZREM', key, ARGV[i]) == 1 then gone[ARGV[i]] = true end
        end
    end
    local count = 0
    for _ in pairs(gone) do count = count + 1 end
    return { replies.OK, count }
end

local function empty(board, root)
    local count, found = 0, scoreboards.list_keys(board, root)
    for _, key in ipairs(found) do count = count + call('ZCARD', key) end
    scoreboards.read_scale(board, root) -- throws when the key has another type
    call('DEL', pattern_keys.board_epoch(root), unpack(found))
    return { replies.OK, count }
end

return function(KEYS, ARGV)
    local board, what = scoreboards.parse(ARGV), ARGV[5] or ''
    local size = arguments.need_count('most members of a board', ARGV[6], 1, MAX_SIZE)
    if what == 'reset' then return empty(board, KEYS[1]) end
    arguments.need(what == 'add' or what == 'set' or what == 'remove', 'the changes are add, set, remove and reset')
    check_members(ARGV, what == 'remove' and 1 or 2)
    if what == 'remove' then return remove_members(board, KEYS[1], ARGV) end
    return change_scores(board, KEYS[1], ARGV, size)
end
