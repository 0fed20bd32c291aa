-- needs: keys, slots
-- Limits of a queue, or of one group of it: a pause, a number of jobs leased at a time, a rate. An operator's limit overrides
-- the one of the definition; 0 from either means no limit. Of a machine with several partitions a queue has a home among them,
-- as a group has, that admits its jobs (group_admissions.lua). Where it refuses, the queue rests on the partition that asked.
local queue_limits = {}

local BURST_MS = 50 -- jobs of this time may be taken at once, so that a worker need not call for each
local SKEW_MS = 1000
local REST, LONGEST = 1000, 60000 -- ms of a queue whose home has no room; one that rests for longer saw a clock that was set back
local FIELDS = { 'paused', 'concurrency', 'rate', 'declared_concurrency', 'declared_rate', 'tat', 'groups', 'whole',
    'declared_whole', 'rest' }
local MAX_JOBS, MAX_MS = 1e9, 1e13
local floor, max = math.floor, math.max

-- Parses `<count>/<ms>` or `<count>/<ms>/<burst>`; nil for anything else.
function queue_limits.parse_rate(text)
    local count, per, burst = string.match(text or '', '^(%d+)/(%d+)/?(%d*)$')
    count, per = tonumber(count), tonumber(per)
    if not count or count < 1 or count > MAX_JOBS or per < 1 or per > MAX_MS then return nil end
    if burst ~= '' and (tonumber(burst) < 1 or tonumber(burst) > MAX_JOBS) then return nil end
    return count, per, tonumber(burst) or max(1, floor(count * BURST_MS / per))
end

-- Computes how many of `whole` jobs at a time one of several partitions may lease. The shares add up to the whole, unless
-- that is less than one for each.
function queue_limits.compute_share(root, whole, partitions)
    local number = slots.get_number(root)
    return max(1, floor(whole / partitions) + (number < whole % partitions and 1 or 0))
end

-- Answers among how many partitions queues and groups have their homes. The number stays when a machine grows, so that each
-- keeps its home. The second result: the number of partitions.
function queue_limits.count_homes(root)
    local row = redis.call('HMGET', keys.meta(root), 'homes', 'partitions')
    return tonumber(row[1] or row[2] or 1), tonumber(row[2] or 1)
end

-- Answers the number of the home of a queue or a group.
function queue_limits.find_home(name, homes)
    return homes > 1 and tonumber(string.sub(redis.sha1hex(name), 1, 8), 16) % homes or 0
end

-- Gives a partition its share of limits, for callers that have no jobs admitted.
function queue_limits.take_share(root, rules)
    local _, partitions = queue_limits.count_homes(root)
    if rules.concurrency then rules.concurrency = queue_limits.compute_share(root, rules.concurrency, partitions) end
    if rules.interval then rules.interval = rules.interval * partitions end
    rules.home = nil
end

-- Makes limits of a pause, a number of jobs and a rate as text; nil when there are none.
function queue_limits.make(paused, concurrency, rate)
    concurrency = tonumber(concurrency or 0)
    local count, per, burst = queue_limits.parse_rate(rate or nil)
    if not paused and concurrency == 0 and not count then return nil end
    return {
        paused = paused or nil,
        concurrency = concurrency > 0 and concurrency or nil,
        interval = count and per / count,
        burst = burst,
    }
end

-- Reads the limits in force; nil when there are none. The second result: the default limits of groups as text, where groups
-- of the queue have limits.
function queue_limits.read(root, queue)
    local row = redis.call('HMGET', keys.rules(root, queue), unpack(FIELDS))
    local rules = queue_limits.make(row[1], row[2] or row[4], row[3] or row[5])
    if rules then rules.tat, rules.rest = tonumber(row[6] or 0), tonumber(row[10] or nil) end
    if not rules or not (rules.concurrency or rules.interval) then return rules, row[7] or nil end
    local homes, partitions = queue_limits.count_homes(root)
    if partitions > 1 then
        rules.home = queue_limits.find_home(queue, homes)
        local own, declared = row[8] and 1 or partitions, row[9] and 1 or partitions -- the library before stored shares
        if rules.concurrency then rules.concurrency = rules.concurrency * (row[2] and own or declared) end
        if rules.interval then rules.interval = rules.interval / (row[3] and own or declared) end
    end
    return rules, row[7] or nil
end

-- The generic cell rate algorithm. `tat` (theoretical arrival time): when the next job would be taken if each came in its
-- turn; a burst may be that far ahead. A job that is taken a little late costs the rate nothing. A clock that was set back,
-- by more than servers differ, must not stop the queue.
function queue_limits.compute_arrival(rules, now)
    local ahead = rules.burst * rules.interval
    if rules.tat > now + ahead + max(rules.interval, SKEW_MS) then return now end
    if rules.tat > now - BURST_MS then return rules.tat end
    return now
end

-- Answers how many of `count` jobs may be taken now, where `leased` are; where fewer, also why: 'paused', 'busy' (as many are
-- leased as may be) or the ms until the rate allows one more.
function queue_limits.compute_allowance(rules, leased, count, now)
    if rules.paused then return 0, 'paused' end
    local why
    if rules.concurrency then
        local free = max(0, rules.concurrency - leased)
        if free < count then count, why = free, 'busy' end
    end
    if rules.interval then
        local tat, ahead = queue_limits.compute_arrival(rules, now), rules.burst * rules.interval
        local free = max(0, floor((now + ahead - tat) / rules.interval + 1e-6))
        if free < count then
            count, why = free, max(1, math.ceil(tat + (free + 1) * rules.interval - ahead - now - 1e-6))
        end
    end
    return count, why
end

-- Answers how many of `count` jobs a partition may lease that has them admitted; where fewer, also why.
function queue_limits.count_room(rules, count, now)
    if rules.paused then return 0, 'paused' end
    local room, why = math.min(rules.concurrency or count, rules.interval and rules.burst or count), 1
    if rules.rest and rules.rest < 0 then
        room, why = math.min(room, -rules.rest), REST
    elseif rules.rest and rules.rest <= now + LONGEST then
        room, why = rules.rest > now and 0 or 1, max(1, rules.rest - now)
    end
    if room < count then return room, why end
    return count
end

-- Lets a queue rest whose home had no room, for some ms or as usual, unless there was an offer meanwhile. Answers for how long.
function queue_limits.let_rest(root, queue, ms, now)
    local key = keys.rules(root, queue)
    if tonumber(redis.call('HGET', key, 'rest') or 0) < 0 then return 1 end
    redis.call('HSET', key, 'rest', now + (ms or REST))
    return ms or REST
end

-- Has the next take lease jobs for `places` that the home of the queue has for it.
function queue_limits.offer(root, queue, places)
    local key = keys.rules(root, queue)
    redis.call('HSET', key, 'rest', math.min(0, tonumber(redis.call('HGET', key, 'rest') or 0)) - places)
end

-- Notes that a take has used `taken` places of what the home offered. `has_more`: whether jobs are left.
function queue_limits.end_rest(rules, root, queue, taken, has_more, now)
    if not rules.rest then return end
    if rules.rest < 0 and has_more then
        local left = rules.rest + taken
        redis.call('HSET', keys.rules(root, queue), 'rest', left < 0 and left or now + REST)
    else
        redis.call('HDEL', keys.rules(root, queue), 'rest')
    end
end

-- Counts `count` taken jobs against the rate.
function queue_limits.count_taken(rules, root, queue, count, now)
    if not rules.interval then return end
    redis.call('HSET', keys.rules(root, queue), 'tat', queue_limits.compute_arrival(rules, now) + count * rules.interval)
end

-- Writes a declared rate as text; nil for none.
function queue_limits.format_rate(declared)
    if not declared.rate then return nil end
    local text = string.format('%.0f/%.0f', declared.rate, declared.per)
    return declared.burst and string.format('%s/%.0f', text, declared.burst) or text
end

-- Stores limits of a queue as text, '' for none. `prefix`: '' for those of an operator, 'declared_' for the definition's.
-- `is_whole`: they are those of all partitions.
function queue_limits.store(root, queue, prefix, concurrency, rate, is_whole)
    local key = keys.rules(root, queue)
    local whole = is_whole and concurrency .. rate ~= '' and '1' or ''
    for name, value in pairs({ concurrency = concurrency, rate = rate, whole = whole }) do
        if value == '' then redis.call('HDEL', key, prefix .. name) else redis.call('HSET', key, prefix .. name, value) end
    end
    redis.call('HDEL', key, 'rest')
end

-- Stores the limits that the current definition declares for a queue: {concurrency, rate = count, per = ms, burst}.
function queue_limits.declare(root, queue, declared)
    local concurrency = declared.concurrency and string.format('%.0f', declared.concurrency) or ''
    queue_limits.store(root, queue, 'declared_', concurrency, queue_limits.format_rate(declared) or '', true)
end

return queue_limits
