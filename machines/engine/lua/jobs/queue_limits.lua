-- needs: keys
-- Limits of a queue: a pause, a number of jobs leased at a time, a rate. Each partition has its share. An operator's limit
-- overrides the one of the definition; 0 from either means no limit.
local queue_limits = {}

local BURST_MS = 50 -- jobs of this time may be taken at once, so that a worker need not call for each
local SKEW_MS = 1000
local FIELDS = { 'paused', 'concurrency', 'rate', 'declared_concurrency', 'declared_rate', 'tat' }
local MAX_JOBS, MAX_MS = 1e9, 1e13
local floor, max = math.floor, math.max

-- Parses `<count>/<ms>`; nil for anything else.
function queue_limits.parse_rate(text)
    local count, per = string.match(text or '', '^(%d+)/(%d+)$')
    count, per = tonumber(count), tonumber(per)
    if not count or count < 1 or count > MAX_JOBS or per < 1 or per > MAX_MS then return nil end
    return count, per
end

-- Computes how many of `whole` jobs at a time one of several partitions may lease. The shares add up to the whole, unless
-- that is less than one for each.
function queue_limits.compute_share(root, whole, partitions)
    local number = tonumber(string.match(root, ':(%d+)}$'))
    return max(1, floor(whole / partitions) + (number < whole % partitions and 1 or 0))
end

-- Reads the limits in force; nil when there are none.
function queue_limits.read(root, queue)
    local row = redis.call('HMGET', keys.rules(root, queue), unpack(FIELDS))
    local concurrency, rate = tonumber(row[2] or row[4] or 0), row[3] or row[5]
    local count, per = queue_limits.parse_rate(rate or nil)
    if not row[1] and concurrency == 0 and not count then return nil end
    return {
        paused = row[1] or nil,
        concurrency = concurrency > 0 and concurrency or nil,
        interval = count and per / count,
        burst = count and max(1, floor(count * BURST_MS / per)),
        tat = tonumber(row[6] or 0),
    }
end

-- The generic cell rate algorithm. `tat` (theoretical arrival time): when the next job would be taken if each came in its
-- turn; a burst may be that far ahead. A clock that was set back, by more than servers differ, must not stop the queue.
local function compute_arrival(rules, now)
    local ahead = rules.burst * rules.interval
    if rules.tat > now + ahead + max(rules.interval, SKEW_MS) then return now end
    return max(rules.tat, now)
end

-- Answers how many of `count` jobs may be taken now; where fewer, also why: 'paused', 'busy' (as many are leased as may be)
-- or the ms until the rate allows one more.
function queue_limits.compute_allowance(rules, root, queue, count, now)
    if rules.paused then return 0, 'paused' end
    local why
    if rules.concurrency then
        local free = max(0, rules.concurrency - redis.call('ZCARD', keys.leased(root, queue)))
        if free < count then count, why = free, 'busy' end
    end
    if rules.interval then
        local tat, ahead = compute_arrival(rules, now), rules.burst * rules.interval
        local free = max(0, floor((now + ahead - tat) / rules.interval + 1e-6))
        if free < count then
            count, why = free, max(1, math.ceil(tat + (free + 1) * rules.interval - ahead - now - 1e-6))
        end
    end
    return count, why
end

-- Counts `count` taken jobs against the rate.
function queue_limits.count_taken(rules, root, queue, count, now)
    if not rules.interval then return end
    redis.call('HSET', keys.rules(root, queue), 'tat', compute_arrival(rules, now) + count * rules.interval)
end

-- Stores the limits that the current definition declares for a queue: {concurrency, rate = count, per = ms}.
function queue_limits.declare(root, queue, declared, partitions)
    local key = keys.rules(root, queue)
    local concurrency, count = declared and declared.concurrency, declared and declared.rate
    if concurrency then
        redis.call('HSET', key, 'declared_concurrency', queue_limits.compute_share(root, concurrency, partitions))
    else
        redis.call('HDEL', key, 'declared_concurrency')
    end
    if count then
        redis.call('HSET', key, 'declared_rate', count .. '/' .. declared.per * partitions)
    else
        redis.call('HDEL', key, 'declared_rate')
    end
end

return queue_limits
