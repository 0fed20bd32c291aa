-- needs: arguments, calendar, cardinality, keys, keyset_pages, replies, time_limit
-- sb_moved: counts the instances that entered a state since the last call, each on the day it did: they are copied from the
-- sets of states to the day's count inside Redis. Steps pay nothing for it. A repeated call changes nothing: each instance
-- counts once.
-- KEYS:    1 root of the partition
-- ARGV:    1 how many to check (1 to 1000) · 2 exact: as for sb_distinct · 3 keep: days a day is kept after its end (1 to
--          400), and how far back the first call goes · 4 now (ms, or '')
-- Returns: {OK, how many were checked, whether there are more 1|0} · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(states * log(partition) + those checked), for some ms at most
local MAX_LOOK, MAX_EXACT, MAX_KEEP = 1000, 10000, 400

-- Parses where the last call stopped in a state, as {score, id}; at first, where kept days begin.
local function parse_mark(mark, since)
    local score, id = string.match(mark or '', '^(%d+) (.*)$')
    return score and { score = score, id = id } or { score = string.format('%.0f', since), id = '' }
end

-- Counts one day of one state. The current ms is left for later, because further instances may enter in it before those that
-- have. The days are separated by positions in the set, so one score is read for all of them.
local function count_day(root, state, look, left)
    local index, mark = keys.state(root, state), redis.call('HGET', keys.marks(root), state)
    local first = keyset_pages.count_passed(index, parse_mark(mark or nil, look.since))
    local at = redis.call('ZRANGE', index, first, first, 'WITHSCORES')[2]
    if not at or tonumber(at) >= look.now then return 0 end
    local day = calendar.day_of(tonumber(at))
    local ends = string.format('(%.0f', math.min(look.now, (day + 1) * calendar.DAY))
    local stop = math.min(first + left, redis.call('ZCOUNT', index, '-inf', ends))
    local found = redis.call('ZRANGE', index, first, stop - 1)
    local bucket = { day = day, part = '', exact = look.exact, keep = look.keep, now = look.now }
    cardinality.add(keys.moved(root), bucket, found)
    local last = found[#found]
    redis.call('HSET', keys.marks(root), state, redis.call('ZSCORE', index, last) .. ' ' .. last)
    return #found
end

-- Counts one day of a state after the other, until it has no more.
local function count_state(root, state, look, looked, over)
    repeat
        local found = count_day(root, state, look, look.most - looked)
        looked = looked + found
    until found == 0 or looked >= look.most or over()
    return looked
end

local function parse(ARGV)
    local bad = arguments.check('', '', '', '', ARGV[4] or '')
    local look = {
        most = arguments.parse_count(ARGV[1], 1, MAX_LOOK), exact = arguments.parse_count(ARGV[2], 0, MAX_EXACT),
        keep = arguments.parse_count(ARGV[3], 1, MAX_KEEP),
    }
    if not look.most then bad = bad or 'how many to check is 1 to ' .. MAX_LOOK end
    if not look.exact then bad = bad or 'exact is a whole number from 0 to ' .. MAX_EXACT end
    if not look.keep then bad = bad or 'keep is in days, from 1 to ' .. MAX_KEEP end
    if bad then return nil, bad end
    look.now = arguments.read_now(ARGV[4])
    look.since = math.max(0, (calendar.day_of(look.now) - look.keep) * calendar.DAY)
    look.keep = look.keep * calendar.DAY
    return look
end

return function(KEYS, ARGV)
    local root, look, bad = KEYS[1], parse(ARGV)
    if not look then return { replies.BAD_ARGUMENT, bad } end
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local looked, over = 0, time_limit.start()
    for _, state in ipairs(redis.call('SMEMBERS', keys.states(root))) do
        -- Each call counts at least once, so that a machine of very many states reaches its last one.
        if looked >= look.most or looked > 0 and over() then return { replies.OK, looked, 1 } end
        looked = count_state(root, state, look, looked, over)
    end
    if looked > 0 then redis.call('PEXPIRE', keys.marks(root), string.format('%.0f', look.keep + calendar.DAY)) end
    return { replies.OK, looked, looked >= look.most and 1 or 0 }
end
