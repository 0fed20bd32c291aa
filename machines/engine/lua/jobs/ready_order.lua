-- needs: group_limits, keys, strings
-- The order of the ready jobs of a queue: by priority, then fair among groups, then by age. The score of a ready job is the
-- band of its priority plus its turn. In a queue without groups a job's turn is its number. Where a queue has groups, the
-- jobs of each lie STRIDE / weight turns apart, beginning at the first ready job: so groups share the queue by their
-- weights, however many jobs one of them has (start-time fair queueing). A group that comes behind a job that was taken goes
-- before the next job of that one's group, and behind all of that turn: so groups of one job each are taken by age, and
-- many of them leave the others their shares. Jobs without a group are then one group. Held jobs come behind all of them
-- (group_limits.lua).
-- <root>:q:<queue>:turns holds the next turn of each group that is ahead of the first ready job; of others nothing is kept.
local ready_order = {}

local PRIORITY, LOWEST = 5, 9 -- 9 is taken first
local BAND = 2 ^ 43 -- more turns than a partition will ever give, so that scores of one priority lie together
local STRIDE = 10 -- turns between two jobs of a group of weight 1
local AGED = 20 -- each twentieth job that is taken comes from a lower priority
local MAX_QUEUES, MAX_GROUP = 20000, 200 -- bytes of a group
local UNHELD = '(' .. string.format('%.0f', group_limits.HELD) -- the end of the scores of jobs that can be taken
local floor = math.floor

ready_order.PRIORITY, ready_order.LOWEST, ready_order.BAND = PRIORITY, LOWEST, BAND
ready_order.MIN_WEIGHT, ready_order.MAX_WEIGHT = 0.1, 10

-- Sorted sets of ready jobs that have jobs of groups: the score of the last job that was taken; and those with jobs of a
-- priority of their own: how many were taken of these, and the priority that comes next in place of a higher one; false for
-- those that have none. Lost when the server restarts: the next job of a group, and a look at the ready jobs, bring it back.
local with_groups, with_priorities, with_priorities_count = {}, {}, 0

-- Answers why a text cannot be a group, or nil.
function ready_order.check_group(group)
    if #group <= MAX_GROUP and strings.is_valid(group) and not string.find(group, '%z') then return nil end
    return 'a group has at most ' .. MAX_GROUP .. ' bytes of UTF-8'
end

local function parse_number(job)
    return tonumber(string.match(job, '(%d+)$'))
end

local function note_priority(ready)
    if with_priorities[ready] then return end
    if with_priorities_count >= MAX_QUEUES then with_priorities, with_priorities_count = {}, 0 end
    with_priorities[ready], with_priorities_count = { taken = 0, band = 0 }, with_priorities_count + 1
end

-- Answers the numbers of the bands of the first ready job, which may be held, and of the last one that can be taken.
local function find_bands(ready)
    local first = redis.call('ZRANGE', ready, 0, 0, 'WITHSCORES')[2]
    local last = redis.call('ZRANGE', ready, UNHELD, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
    return first and floor(first / BAND), last and floor(last / BAND)
end

-- Finds whether there are ready jobs of a priority of their own: some may have come before the server restarted.
local function find_priorities(ready)
    local highest, lowest = find_bands(ready)
    note_priority(ready)
    local usual = LOWEST - PRIORITY
    if (highest or usual) == usual and (lowest or usual) == usual then with_priorities[ready] = false end
    return with_priorities[ready]
end

-- Answers the turn of the first ready job of a priority; nil when there is none.
local function find_first_turn(ready, band)
    local first = redis.call('ZRANGE', ready, band, '(' .. string.format('%.0f', band + BAND), 'BYSCORE', 'LIMIT', 0, 1,
        'WITHSCORES')
    return first[1] and tonumber(first[2]) - band
end

local function name_group(priority, group)
    return (tonumber(priority) or PRIORITY) .. (group or '')
end

-- Answers the turn of a job that is new among the ready ones, and moves the next turn of its group on. `most`: how many jobs
-- of its group are ready with it, where the rest of them is held.
local function give_turn(root, queue, ready, job, spec, band, most)
    with_groups[ready] = with_groups[ready] or 0
    local turns, group = keys.turns(root, queue), name_group(spec.priority, spec.group)
    local first, turn, stride = find_first_turn(ready, band), parse_number(job), STRIDE / (tonumber(spec.weight) or 1)
    if first then
        local ahead = redis.call('ZSCORE', turns, group)
        turn = math.max(first, math.min(first, with_groups[ready] - band) + STRIDE - 1, ahead and tonumber(ahead) - band or 0)
        if most then turn = math.min(turn, first + most * stride) end
    end
    redis.call('ZADD', turns, band + turn + stride, group)
    return turn
end

-- Computes the score of a job among the ready ones. `spec`: its priority, group and weight. `has_run`: whether it was taken
-- before and comes back for a further attempt: it then goes before the other jobs of its priority, as its number does. A job
-- of a group with limits is held at first.
function ready_order.compute_score(root, queue, job, spec, has_run)
    local priority = tonumber(spec.priority) or PRIORITY
    local band, has_group = (LOWEST - priority) * BAND, (spec.group or '') ~= ''
    if not has_group and priority == PRIORITY and not next(with_groups) then return band + parse_number(job) end
    local ready, held = keys.ready(root, queue), nil
    if priority ~= PRIORITY then note_priority(ready) end
    if has_group then held = group_limits.hold(root, queue, job, spec, priority, has_run) end
    if held then return held end
    if not has_group and not with_groups[ready] then return band + parse_number(job) end
    if has_run then return band + (find_first_turn(ready, band) or parse_number(job)) end
    return band + give_turn(root, queue, ready, job, spec, band)
end

-- Computes the score of a held job that its group's limits let be ready, as one of `most` ready ones of the group.
function ready_order.compute_released(root, queue, job, spec, most)
    local priority, ready = tonumber(spec.priority) or PRIORITY, keys.ready(root, queue)
    local band = (LOWEST - priority) * BAND
    if priority ~= PRIORITY then note_priority(ready) end
    return band + give_turn(root, queue, ready, job, spec, band, most)
end

-- Gives back the turn of a job that was ready and is removed without having been taken.
function ready_order.give_back(root, queue, spec)
    if (spec.group or '') == '' and not (next(with_groups) and with_groups[keys.ready(root, queue)]) then return end
    local turns, group = keys.turns(root, queue), name_group(spec.priority, spec.group)
    redis.pcall('ZADD', turns, 'XX', 'INCR', -STRIDE / (tonumber(spec.weight) or 1), group)
end

-- Answers what `restore` needs to put a ready job back where it is.
function ready_order.save(root, queue, job, spec)
    local score, group = redis.call('ZSCORE', keys.ready(root, queue), job), spec.group or ''
    return { score = score, turn = redis.call('ZSCORE', keys.turns(root, queue), name_group(spec.priority, group)),
        limits = score and group ~= '' and group_limits.save(root, queue, job, group, tonumber(score)) }
end

function ready_order.restore(root, queue, job, spec, saved)
    if saved.score then redis.call('ZADD', keys.ready(root, queue), saved.score, job) end
    if saved.turn then redis.call('ZADD', keys.turns(root, queue), saved.turn, name_group(spec.priority, spec.group)) end
    if saved.limits then group_limits.restore(root, queue, spec.group, saved.limits) end
end

-- Forgets all groups: no ready job is left. The server may have restarted since there were some.
function ready_order.note_emptied(root, queue)
    with_groups[keys.ready(root, queue)] = nil
    redis.pcall('DEL', keys.turns(root, queue))
end

-- Forgets the groups that are not ahead of a job that was taken: it had this score, and `emptied` tells whether no ready job is
-- left. `has_group`: whether one of the taken jobs has a group.
function ready_order.note_taken(root, queue, score, emptied, has_group)
    if not (has_group or next(with_groups)) then return end
    local ready = keys.ready(root, queue)
    if not (has_group or with_groups[ready]) then return end
    if emptied then
        ready_order.note_emptied(root, queue)
    else
        with_groups[ready] = score
        redis.pcall('ZREMRANGEBYSCORE', keys.turns(root, queue), floor(score / BAND) * BAND, score)
    end
end

-- Lists up to `count` jobs, first in order; `remove_first` takes them out. Where groups have limits, none that is held: these are
-- removed at once, since what the limits do not let run comes back to another rank, and `scores` has their scores.
function ready_order.list_first(ready, count, has_held)
    if not has_held then return redis.call('ZRANGE', ready, 0, count - 1) end
    local found = redis.call('ZRANGE', ready, '-inf', UNHELD, 'BYSCORE', 'LIMIT', 0, count, 'WITHSCORES')
    local ids, scores = {}, {}
    for i = 1, #found, 2 do ids[#ids + 1], scores[#scores + 1] = found[i], found[i + 1] end
    if ids[1] then redis.call('ZREM', ready, unpack(ids)) end
    ids.scores = scores
    return ids
end

-- Removes the first `count` of the listed jobs; puts the others back where they were removed. Answers the score of the last.
function ready_order.remove_first(ready, listed, count)
    local scores, flat = listed.scores, {}
    if not scores then
        local last = redis.call('ZSCORE', ready, listed[count])
        redis.call('ZREMRANGEBYRANK', ready, 0, count - 1)
        return tonumber(last)
    end
    for i = count + 1, #listed do flat[#flat + 1], flat[#flat + 2] = scores[i], listed[i] end
    if flat[1] then redis.call('ZADD', ready, unpack(flat)) end
    return tonumber(scores[count])
end

-- Removes and answers a job, and its score, that goes before those of a higher priority so that none waits for ever; nil for
-- none. `count`: how many jobs the caller is about to take. Each priority that has jobs has its turn.
function ready_order.pop_aged(ready, count)
    local seen = with_priorities[ready]
    if seen == nil then seen = find_priorities(ready) end
    if not seen then return nil end
    seen.taken = seen.taken + count
    if seen.taken < AGED then return nil end
    seen.taken = seen.taken % AGED
    local highest, lowest = find_bands(ready)
    if not lowest or highest == lowest then return nil end
    if seen.band <= highest or seen.band > lowest then seen.band = highest + 1 end
    local found = redis.call('ZRANGE', ready, seen.band * BAND, UNHELD, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    seen.band = floor(found[2] / BAND) + 1
    redis.call('ZREM', ready, found[1])
    return found[1], found[2]
end

return ready_order
