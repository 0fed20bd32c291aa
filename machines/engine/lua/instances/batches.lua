-- needs: jobs, keys, queue_counters
-- Steps and jobs of one call that write to the same keys. What is new to the batch is written at once, which shows that it
-- can be written; more of the same is gathered, and written at the end in few commands. So that the order of what is
-- gathered does not matter, an instance of a flat machine moves once in a batch: that step ends all jobs it waited for.
local batches = {}

local call, pcall_redis, unpack, min = redis.call, redis.pcall, unpack, math.min

local MOST_IDS = 2000 -- in one command: Lua's stack holds 8000 values

-- `stamp`: the moment of all its steps, as it is written; `short`: nobody reads the instances as they then are.
function batches.open(root, stamp, short)
    return { root = root, stamp = stamp, short = short, ways = {}, flow = {}, flow_key = nil, rings = {}, ended = {},
        queues = {} }
end

local function add(key, stamp, ids)
    for first = 1, ids.count, MOST_IDS do
        local words, count = {}, 0
        for i = first, min(first + MOST_IDS - 1, ids.count) do
            words[count + 1], words[count + 2] = stamp, ids[i]
            count = count + 2
        end
        call('ZADD', key, unpack(words))
    end
end

local function remove(key, ids)
    for first = 1, ids.count, MOST_IDS do
        call('ZREM', key, unpack(ids, first, min(first + MOST_IDS - 1, ids.count)))
    end
end

local function settle_index(batch)
    for to, origins in pairs(batch.ways) do
        for from, ids in pairs(origins) do
            add(to, batch.stamp, ids)
            if from ~= to then remove(from, ids) end
        end
    end
end

-- Has an instance of this batch gone from the one index to the other already?
function batches.knows_way(batch, from, to)
    local origins = batch.ways[to]
    return origins ~= nil and origins[from] ~= nil
end

-- The instance goes that way; `written`: its step has written so itself.
function batches.go(batch, from, to, id, written)
    local origins = batch.ways[to]
    if not origins then
        origins = {}
        batch.ways[to] = origins
    end
    local ids = origins[from]
    if not ids then
        ids = { count = 0 }
        origins[from] = ids
    end
    if written then return end
    local count = ids.count + 1
    ids[count], ids.count = id, count
end

-- Have all these edges been counted in this batch already?
function batches.knows_edges(batch, edges)
    local flow = batch.flow
    for i = 1, #edges do
        if not flow[edges[i].flow] then return false end
    end
    return true
end

-- The edges were taken; `written`: their step has counted them itself.
function batches.count(batch, key, edges, written)
    local flow, more = batch.flow, written and 0 or 1
    batch.flow_key = key
    for i = 1, #edges do
        local name = edges[i].flow
        flow[name] = (flow[name] or 0) + more
    end
end

-- A job came to the ready of a queue.
function batches.ring(batch, queue)
    batch.rings[queue] = (batch.rings[queue] or 0) + 1
end

-- A job is over after so many ms. One with a unique key gives it back at once: the next step may want it.
function batches.finish(batch, job, row, ms)
    local queue = batch.queues[row.queue]
    if not queue then
        queue = { jobs = {}, hashes = {}, count = 0, runs = {} }
        batch.queues[row.queue] = queue
    end
    local bucket = queue_counters.find_bucket(ms)
    queue.runs[bucket] = (queue.runs[bucket] or 0) + 1
    batch.ended[job] = true
    if row.unique then return jobs.delete(batch.root, job, row) end
    local count = queue.count + 1
    queue.jobs[count], queue.hashes[count], queue.count = job, keys.job(batch.root, job), count
end

-- A place that is no sorted set does not hold the jobs.
local function erase(batch, name, queue)
    if queue.count > 0 then
        pcall_redis('ZREM', keys.leased(batch.root, name), unpack(queue.jobs))
        call('DEL', unpack(queue.hashes))
        jobs.ring_requested_bell(batch.root, name)
    end
    queue_counters.count_run_times(batch.root, name, queue.runs)
end

-- Writes all that was gathered.
function batches.close(batch)
    settle_index(batch)
    for name, count in pairs(batch.flow) do
        if count > 0 then call('HINCRBY', batch.flow_key, name, count) end
    end
    for name, queue in pairs(batch.queues) do erase(batch, name, queue) end
    for queue, count in pairs(batch.rings) do jobs.ring_bell(batch.root, queue, count) end
end

return batches
