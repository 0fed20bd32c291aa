-- needs: arguments, pattern_keys
-- What a scoreboard is: of all time ('all'), one for each hour, day or week, or one whose scores fade ('fade').
--
-- Fading scales forward: points that come at t are kept as points * 2^((t - epoch) / half-life), so that nobody's score has
-- to be touched as time goes by, and the order of any two stays what it was when they last changed. Before that leaves
-- what a double can say, all are multiplied by one power of two, which changes no digit of any.
local scoreboards = {}
local floor, format = math.floor, string.format

local HOUR = 3600000
local LENGTHS = { hour = HOUR, day = 24 * HOUR, week = 168 * HOUR }
local SHIFTS = { hour = 0, day = 0, week = 72 * HOUR } -- 1970-01-01 was a Thursday; weeks begin on Monday
local MAX_KEEP = 400
scoreboards.MOST = 2 ^ 53 - 1 -- of a score: one more, and whole numbers are no longer told apart
scoreboards.FAR = 512 -- half-lives after which scores are scaled back
scoreboards.GONE = 100 -- half-lives after which what is left of a point counts for nothing
local FORGOTTEN = 160 -- half-lives without points after which a board goes

-- {kind, half, keep, now, ...} of the first four arguments; else nil and why not. `half`: ms.
function scoreboards.read(ARGV)
    local kind, half, keep = ARGV[1] or '', arguments.count(ARGV[2], 0, 1e12), arguments.count(ARGV[3], 0, MAX_KEEP)
    if kind ~= 'all' and kind ~= 'fade' and not LENGTHS[kind] then
        return nil, 'the kinds of boards are all, hour, day, week and fade'
    end
    if not half or kind == 'fade' and half < 1 then return nil, 'a half-life is in ms, a whole number' end
    if not keep then return nil, 'keep is a whole number of periods up to ' .. MAX_KEEP end
    local given, now = ARGV[4] or '', 0
    local bad = given ~= '' and arguments.misfit('', '', '', '', given)
    if bad then return nil, bad end
    if kind ~= 'all' then now = arguments.now(given) end
    return { kind = kind, half = half, keep = keep, now = now, epoch = 0, touched = 0, scaled = false }
end

local function number(board)
    return floor((board.now + SHIFTS[board.kind]) / LENGTHS[board.kind])
end

-- The key of the scores of now, or of so many periods before.
function scoreboards.scores(board, root, before)
    return pattern_keys.board_scores(root, LENGTHS[board.kind] and number(board) - (before or 0) or 'all')
end

-- Those of now and of every period that is kept.
function scoreboards.all(board, root)
    local found = {}
    for before = 0, LENGTHS[board.kind] and board.keep or 0 do found[before + 1] = scoreboards.scores(board, root, before) end
    return found
end

-- ms, as a text; nil for a board of all time, which stays.
function scoreboards.ttl(board)
    if board.kind == 'all' then return nil end
    local length = LENGTHS[board.kind]
    local ms = length and (number(board) + 1 + board.keep) * length - SHIFTS[board.kind] - board.now or FORGOTTEN * board.half
    return string.format('%.0f', ms)
end

-- From which ms on the scores are scaled, how many half-lives ago that was, and when that was last written down; what came
-- long before it counts as `GONE` half-lives before it. A board that does not fade has none.
function scoreboards.scale(board, root)
    if board.kind ~= 'fade' then return board.now, 0, board.now end
    local kept = redis.call('GET', pattern_keys.board_epoch(root))
    if not kept then return board.now, 0, 0 end
    local epoch, touched = string.match(kept, '^(%d+) (%d+)$')
    if not epoch then error({ err = 'ERR the moment a board is scaled from is no time' }) end
    epoch, touched = tonumber(epoch), tonumber(touched)
    return epoch, math.max(-scoreboards.GONE, (board.now - epoch) / board.half), touched
end

-- Digit for digit; whole numbers, which most are, at a third of the cost.
function scoreboards.text(score)
    return format(score % 1 == 0 and score <= scoreboards.MOST and score >= -scoreboards.MOST and '%d' or '%.17g', score)
end

return scoreboards
