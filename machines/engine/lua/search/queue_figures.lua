-- needs: group_limits, jobs, json, keys, packed_jobs, ready_order
-- Reads the statistics of the queues of a partition.
local queue_figures = {}

local SAMPLE = 20

local function read_hash(key)
    local flat, found = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
    return found
end

-- Reads when a job became ready; nil for anything that is no job.
local function read_ready_time(root, job)
    local row = packed_jobs.read(keys.job(root, job), 'due', 'created')
    return row and tonumber(row.due or row.created)
end

-- The first job of each priority has waited longest, except for retries: these keep their rank and wait anew. So the first
-- few of each priority are read.
local function find_oldest(root, queue)
    local key, from, found = keys.ready(root, queue), 0, nil
    for _ = 0, 2 * ready_order.LOWEST + 1 do -- held ones of a priority have a band of their own
        local first = redis.call('ZRANGE', key, from, '+inf', 'BYSCORE', 'LIMIT', 0, SAMPLE, 'WITHSCORES')
        if not first[1] then return found end
        local last = (math.floor(tonumber(first[2]) / ready_order.BAND) + 1) * ready_order.BAND
        for i = 1, #first, 2 do
            if tonumber(first[i + 1]) >= last then break end
            local at = read_ready_time(root, first[i])
            if at and (not found or at < found) then found = at end
        end
        from = last
    end
    return found
end

-- Answers queue -> {ready, leased, delayed, dead, handled, oldest, counters, rules, held}; held where groups have limits.
function queue_figures.read(root)
    local found = {}
    for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do
        local row = { counters = read_hash(keys.stats(root, queue)), rules = read_hash(keys.rules(root, queue)) }
        for place, key in pairs(jobs.places) do row[place] = redis.call('ZCARD', key(root, queue)) end
        row.oldest = row.ready > 0 and find_oldest(root, queue) or json.null
        if row.rules.groups then row.held = redis.call('ZCOUNT', keys.ready(root, queue), group_limits.HELD, '+inf') end
        found[queue] = row
    end
    return found
end

return queue_figures
