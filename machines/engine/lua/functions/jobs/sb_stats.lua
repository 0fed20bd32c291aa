-- needs: arguments, jobs, json, keys, replies
-- sb_stats: each queue of a partition: how many jobs are where, what has happened, and what holds it back.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    none
-- Returns: {OK, JSON {now, queues: {queue: {ready, leased, delayed, dead, oldest, counters, rules}}}}: oldest is the ms since
--          when a ready job has waited, as far as the first twenty of each priority tell; counters and rules are the
--          hashes as they are · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(queues), whatever the number of jobs

local LOOKED = 20

local function hash(key)
    local flat, found = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
    return found
end

-- When a job became ready; nil for what is none.
local function since(root, job)
    local row = redis.pcall('HMGET', keys.job(root, job), 'due', 'created')
    return not row.err and tonumber(row[1] or row[2]) or nil
end

-- The first of each priority waits longest in it, but for those that came back: a retry keeps its place in the line and waits
-- anew. So the first few are looked at.
local function oldest(root, queue)
    local key, from, found = keys.ready(root, queue), 0, nil
    for _ = 0, jobs.LOWEST do
        local first = redis.call('ZRANGE', key, from, '+inf', 'BYSCORE', 'LIMIT', 0, LOOKED, 'WITHSCORES')
        if not first[1] then return found end
        local last = (math.floor(tonumber(first[2]) / jobs.BAND) + 1) * jobs.BAND
        for i = 1, #first, 2 do
            if tonumber(first[i + 1]) >= last then break end
            local at = since(root, first[i])
            if at and (not found or at < found) then found = at end
        end
        from = last
    end
    return found
end

return function(KEYS)
    local root, found = KEYS[1], {}
    for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do
        local row = { counters = hash(keys.stats(root, queue)), rules = hash(keys.rules(root, queue)) }
        for place, key in pairs(jobs.places) do row[place] = redis.call('ZCARD', key(root, queue)) end
        row.oldest = row.ready > 0 and oldest(root, queue) or json.null
        found[queue] = row
    end
    return { replies.OK, json.encode({ now = arguments.read_now(''), queues = found }) }
end
