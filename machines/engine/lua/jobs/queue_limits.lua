-- needs: keys
-- Limits of a queue, or of one group of it: a pause, a number of jobs leased at a time, a rate. Each partition has its share
-- of a queue's. An operator's limit overrides the one of the definition; 0 from either means no limit.
local queue_limits = {}

local BURST_MS = 50 -- jobs of this time may be taken at once, so that a worker need not call for each
local SKEW_MS = 1000
local FIELDS = { 'paused', 'concurrency', 'rate', 'declared_concurrency', 'declared_rate', 'tat', 'groups' }
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
    local number = tonumber(string.match(root, ':(%d+)}$'))
    return max(1, floor(whole / partitions) + (number < whole % partitions and 1 or 0))
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
    if rules then rules.tat = tonumber(row[6] or 0) end
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

-- Counts `count` taken jobs against the rate.
function queue_limits.count_taken(rules, root, queue, count, now)
    if not rules.interval then return end
    redis.call('HSET', keys.rules(root, queue), 'tat', queue_limits.compute_arrival(rules, now) + count * rules.interval)
end

-- Writes a declared rate as text, where each of some partitions has a share; nil for none.
function queue_limits.format_rate(declared, shares)
    if not declared.rate then return nil end
    local text = string.format('%.0f/%.0f', declared.rate, declared.per * shares)
    return declared.burst and string.format('%s/%.0f', text, declared.burst) or text
end

-- Stores the limits that the current definition declares for a queue: {concurrency, rate = count, per = ms, burst}.
function queue_limits.declare(root, queue, declared, partitions)
    local key = keys.rules(root, queue)
    local concurrency, rate = declared and declared.concurrency, declared and queue_limits.format_rate(declared, partitions)
    if concurrency then
        redis.call('HSET', key, 'declared_concurrency', queue_limits.compute_share(root, concurrency, partitions))
    else
        redis.call('HDEL', key, 'declared_concurrency')
    end
    if rate then
        redis.call('HSET', key, 'declared_rate', rate)
    else
        redis.call('HDEL', key, 'declared_rate')
    end
end

return queue_limits
