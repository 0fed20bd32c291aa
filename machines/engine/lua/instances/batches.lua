-- needs: jobs, keys, queue_counters
-- Collects the writes of several steps and jobs of one call to the same keys. The first write of a kind happens at once,
-- which shows that it is possible; further ones are collected, and written at the end in few commands. An instance of a flat
-- machine takes one step in a batch at most, which ends all jobs it waited for, so the order of collected writes does not
-- matter.
local batches = {}

local call, pcall_redis, unpack, min = redis.call, redis.pcall, unpack, math.min

local MAX_IDS = 2000 -- ids in one command: Lua's stack holds 8000 values

-- `stamp`: the time of all its steps as it is written; `short`: the caller needs no instances in the replies.
function batches.open(root, stamp, short)
    return { root = root, stamp = stamp, short = short, moves = {}, flow = {}, flow_key = nil, rings = {}, ended = {},
        queues = {}, ms = nil, bucket = 0 }
end

local function add(key, stamp, ids)
    for first = 1, ids.count, MAX_IDS do
        local pairs_list, count = {}, 0
        for i = first, min(first + MAX_IDS - 1, ids.count) do
            pairs_list[count + 1], pairs_list[count + 2] = stamp, ids[i]
            count = count + 2
        end
        call('ZADD', key, unpack(pairs_list))
    end
end

local function remove(key, ids)
    for first = 1, ids.count, MAX_IDS do
        call('ZREM', key, unpack(ids, first, min(first + MAX_IDS - 1, ids.count)))
    end
end

local function write_moves(batch)
    for to, origins in pairs(batch.moves) do
        for from, ids in pairs(origins) do
            add(to, batch.stamp, ids)
            if from ~= to then remove(from, ids) end
        end
    end
end

-- Tells whether an instance of this batch has moved from the one index to the other.
function batches.has_move(batch, from, to)
    local origins = batch.moves[to]
    return origins ~= nil and origins[from] ~= nil
end

-- Adds a move between two indexes; `written`: the step has written it.
function batches.add_move(batch, from, to, id, written)
    local origins = batch.moves[to]
    if not origins then
        origins = {}
        batch.moves[to] = origins
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

-- Tells whether this batch has counted all these transitions before.
function batches.has_transitions(batch, edges)
    local flow = batch.flow
    for i = 1, #edges do
        if not flow[edges[i].flow] then return false end
    end
    return true
end

-- Adds transitions to the flow; `written`: the step has counted them.
function batches.add_transitions(batch, key, edges, written)
    local flow, step = batch.flow, written and 0 or 1
    batch.flow_key = key
    for i = 1, #edges do
        local name = edges[i].flow
        flow[name] = (flow[name] or 0) + step
    end
end

-- Notes a new ready job of a queue.
function batches.add_ready_job(batch, queue)
    batch.rings[queue] = (batch.rings[queue] or 0) + 1
end

-- Adds a job that ended after `ms`; `row.key` is its hash. A job with a unique key is deleted at once: the next step may need
-- the key.
function batches.add_ended_job(batch, job, row, ms)
    local queue = batch.queues[row.queue]
    if not queue then
        queue = { jobs = {}, hashes = {}, count = 0, runs = {} }
        batch.queues[row.queue] = queue
    end
    if ms ~= batch.ms then batch.ms, batch.bucket = ms, queue_counters.find_bucket(ms) end
    queue.runs[batch.bucket] = (queue.runs[batch.bucket] or 0) + 1
    batch.ended[job] = true
    if row.group then jobs.leave_group(batch.root, job, row, 'leased') end
    if row.unique then return jobs.delete(batch.root, job, row) end
    local count = queue.count + 1
    queue.jobs[count], queue.hashes[count], queue.count = job, row.key, count
end

-- A place that is no sorted set does not hold the jobs.
local function delete_jobs(batch, name, queue)
    if queue.count > 0 then
        pcall_redis('ZREM', keys.leased(batch.root, name), unpack(queue.jobs))
        call('DEL', unpack(queue.hashes))
        jobs.ring_requested_bell(batch.root, name)
    end
    queue_counters.count_run_times(batch.root, name, queue.runs)
end

-- Writes everything collected.
function batches.close(batch)
    write_moves(batch)
    for name, count in pairs(batch.flow) do
        if count > 0 then call('HINCRBY', batch.flow_key, name, count) end
    end
    for name, queue in pairs(batch.queues) do delete_jobs(batch, name, queue) end
    for queue, count in pairs(batch.rings) do jobs.ring_bell(batch.root, queue, count) end
end

return batches
