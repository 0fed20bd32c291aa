-- needs: keys
-- What holds a queue back: a pause, a number of jobs that may be leased at a time, a rate. Each partition keeps its share.
-- The operator's word goes before what a definition declares; 0 from either means no limit.
local queue_limits = {}

local BURST_MS = 50 -- jobs of this much time may be handed out at once: a worker need not come back for each
local SKEW_MS = 1000
local FIELDS = { 'paused', 'concurrency', 'rate', 'declared_concurrency', 'declared_rate', 'tat' }
local MOST_JOBS, MOST_MS = 1e9, 1e13
local floor, max = math.floor, math.max

-- `<count>/<ms>`; nil where it is none.
function queue_limits.rate(text)
    local count, per = string.match(text or '', '^(%d+)/(%d+)$')
    count, per = tonumber(count), tonumber(per)
    if not count or count < 1 or count > MOST_JOBS or per < 1 or per > MOST_MS then return nil end
    return count, per
end

-- Of `whole` jobs at a time, what one of several partitions may lease: all shares together are the whole, unless that is
-- less than one for each.
function queue_limits.share(root, whole, partitions)
    local number = tonumber(string.match(root, ':(%d+)}$'))
    return max(1, floor(whole / partitions) + (number < whole % partitions and 1 or 0))
end

-- The rules in force; nil where there are none.
function queue_limits.read(root, queue)
    local row = redis.call('HMGET', keys.rules(root, queue), unpack(FIELDS))
    local concurrency, rate = tonumber(row[2] or row[4] or 0), row[3] or row[5]
    local count, per = queue_limits.rate(rate or nil)
    if not row[1] and concurrency == 0 and not count then return nil end
    return {
        paused = row[1] or nil,
        concurrency = concurrency > 0 and concurrency or nil,
        interval = count and per / count,
        burst = count and max(1, floor(count * BURST_MS / per)),
        tat = tonumber(row[6] or 0),
    }
end

-- The generic cell rate algorithm. `tat`: when the next job would be handed out if each came in its turn; a burst may be
-- that far ahead. A clock that was set back, by more than servers differ, must not stop the queue for as long.
local function arrival(rules, now)
    local ahead = rules.burst * rules.interval
    if rules.tat > now + ahead + max(rules.interval, SKEW_MS) then return now end
    return max(rules.tat, now)
end

-- How many of `count` jobs may be handed out now; and, where that is fewer, why: 'paused', 'busy' (as many are leased as
-- may be) or the ms until the rate allows one more.
function queue_limits.allowance(rules, root, queue, count, now)
    if rules.paused then return 0, 'paused' end
    local why
    if rules.concurrency then
        local free = max(0, rules.concurrency - redis.call('ZCARD', keys.leased(root, queue)))
        if free < count then count, why = free, 'busy' end
    end
    if rules.interval then
        local tat, ahead = arrival(rules, now), rules.burst * rules.interval
        local free = max(0, floor((now + ahead - tat) / rules.interval + 1e-6))
        if free < count then
            count, why = free, max(1, math.ceil(tat + (free + 1) * rules.interval - ahead - now - 1e-6))
        end
    end
    return count, why
end

-- `count` jobs were handed out.
function queue_limits.spend(rules, root, queue, count, now)
    if not rules.interval then return end
    redis.call('HSET', keys.rules(root, queue), 'tat', arrival(rules, now) + count * rules.interval)
end

-- What the current definition says, queue by queue: {concurrency, rate = count, per = ms}.
function queue_limits.declare(root, queue, declared, partitions)
    local key = keys.rules(root, queue)
    local concurrency, count = declared and declared.concurrency, declared and declared.rate
    if concurrency then
        redis.call('HSET', key, 'declared_concurrency', queue_limits.share(root, concurrency, partitions))
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
