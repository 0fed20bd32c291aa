-- needs: arguments, pattern_keys
-- A scoreboard: of all time ('all'), one for each hour, day or week, or one with fading scores ('fade'). \n \nFading scales
-- forward: points at time t are stored as points * 2^((t - epoch) / half-life), so no score has to be updated as time
-- passes, and the order of any two members stays what it was when they last changed. Before stored scores exceed a double,
-- all are multiplied by one power of two, which keeps every digit.
local scoreboards = {}
local floor, format = math.floor, string.format

local HOUR = 3600000
local LENGTHS = { hour = HOUR, day = 24 * HOUR, week = 168 * HOUR }
local SHIFTS = { hour = 0, day = 0, week = 72 * HOUR } -- 1970-01-01 was a Thursday; weeks begin on Monday
local MAX_KEEP = 400
scoreboards.MAX_SCORE = 2 ^ 53 - 1 -- above it whole numbers are no longer distinct
scoreboards.RESCALE_AFTER = 512 -- half-lives after which scores are scaled back
scoreboards.WORTHLESS_AFTER = 100 -- half-lives after which the rest of a point counts for nothing
local FORGOTTEN_AFTER = 160 -- half-lives without points after which a board is deleted

-- Parses the first four arguments to {kind, half, keep, now, ...}. `half`: ms.
function scoreboards.parse(ARGV)
    local kind, half, keep = ARGV[1] or '', arguments.parse_count(ARGV[2], 0, 1e12), arguments.parse_count(ARGV[3], 0, MAX_KEEP)
    local is_kind = kind == 'all' or kind == 'fade' or LENGTHS[kind]
    arguments.need(is_kind, 'the kinds of boards are all, hour, day, week and fade')
    arguments.need(half and (kind ~= 'fade' or half >= 1), 'a half-life is in ms, a whole number')
    arguments.need(keep, 'keep is a whole number of periods up to ' .. MAX_KEEP)
    local now = (kind ~= 'all' or (ARGV[4] or '') ~= '') and arguments.need_now(ARGV[4])
    return { kind = kind, half = half, keep = keep, now = kind ~= 'all' and now or 0, epoch = 0, touched = 0, scaled = false }
end

local function period_number(board)
    return floor((board.now + SHIFTS[board.kind]) / LENGTHS[board.kind])
end

-- Makes the key of the current scores, or of those `before` periods ago.
function scoreboards.make_key(board, root, before)
    return pattern_keys.board_scores(root, LENGTHS[board.kind] and period_number(board) - (before or 0) or 'all')
end

-- Lists the keys of the current scores and of every kept period.
function scoreboards.list_keys(board, root)
    local found = {}
    for before = 0, LENGTHS[board.kind] and board.keep or 0 do found[before + 1] = scoreboards.make_key(board, root, before) end
    return found
end

-- Computes the time to live in ms, as text; nil for a board of all time, which is kept.
function scoreboards.compute_ttl(board)
    if board.kind == 'all' then return nil end
    local length = LENGTHS[board.kind]
    local ms = FORGOTTEN_AFTER * board.half
    if length then ms = (period_number(board) + 1 + board.keep) * length - SHIFTS[board.kind] - board.now end
    return string.format('%.0f', ms)
end

-- Answers from which ms on scores are scaled, how many half-lives ago that was, and when it was last written. Points long
-- before it count as WORTHLESS_AFTER half-lives before it. A board that does not fade has no scale.
function scoreboards.read_scale(board, root)
    if board.kind ~= 'fade' then return board.now, 0, board.now end
    local kept = redis.call('GET', pattern_keys.board_epoch(root))
    if not kept then return board.now, 0, 0 end
    local epoch, touched = string.match(kept, '^(%d+) (%d+)$')
    if not epoch then error({ err = 'ERR the epoch of the board is no time' }) end
    epoch, touched = tonumber(epoch), tonumber(touched)
    return epoch, math.max(-scoreboards.WORTHLESS_AFTER, (board.now - epoch) / board.half), touched
end

-- Formats a score with all digits; whole numbers, the common case, at a third of the cost.
function scoreboards.format(score)
    local is_whole = score % 1 == 0 and score <= scoreboards.MAX_SCORE and score >= -scoreboards.MAX_SCORE
    return format(is_whole and '%d' or '%.17g', score)
end

return scoreboards
