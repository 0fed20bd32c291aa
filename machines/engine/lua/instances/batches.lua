-- needs: group_admissions, jobs, keys, queue_counters
-- Collects the writes of several steps and jobs of one call to the same keys. The first write of a kind happens at once,
-- which shows that it is possible; further ones are collected, and written at the end in few commands. An instance of a flat
-- machine takes one step in a batch at most, which ends all jobs it waited for, so the order of collected writes does not
-- matter.
local batches = {}

local call, pcall_redis, unpack, min = redis.call, redis.pcall, unpack, math.min

local MAX_IDS = 2000 -- ids in one command: Lua's stack holds 8000 values

-- `stamp`: the time of all its steps as it is written; `short`: the caller needs no instances in the replies.
function batches.open(root, stamp, short)
    return { root = root, stamp = stamp, short = short, kinds = {}, chart_kinds = {}, rings = {}, ended = {}, queues = {},
        ms = nil, bucket = 0 }
end

-- The arguments of ZADD, overwritten by each; only as many are sent as were filled in.
local pairs_list = {}

local function add(key, stamp, ids)
    for first = 1, ids.count, MAX_IDS do
        local count = 0
        for i = first, min(first + MAX_IDS - 1, ids.count) do
            pairs_list[count + 1], pairs_list[count + 2] = stamp, ids[i]
            count = count + 2
        end
        call('ZADD', key, unpack(pairs_list, 1, count))
    end
end

local function remove(key, ids)
    for first = 1, ids.count, MAX_IDS do
        call('ZREM', key, unpack(ids, first, min(first + MAX_IDS - 1, ids.count)))
    end
end

-- Answers by what a batch finds what is collected of steps by these transitions, which are of one kind: nothing before the
-- first of them. Steps that write their indexes as those of charts do are of kinds of their own, `chart_kinds`: an instance of
-- a flat machine may be a child. A kind is a list of instances with their `count`.
function batches.find_kind(edges)
    return edges[2] and edges or edges[1] or edges
end

-- Begins to collect steps by these transitions, of which one is written. `from`, `to`: the indexes that an instance moves
-- between, false for none; `logged`: whether the log of steps has them.
function batches.add_kind(batch, edges, is_chart, from, to, flow_key, logged)
    local kinds = is_chart and batch.chart_kinds or batch.kinds
    local kind = { edges = edges, from = from, to = to, flow_key = flow_key, logged = logged, count = 0 }
    kinds[batches.find_kind(edges)] = kind
end

local function write_kind(kind, stamp)
    if kind.to then add(kind.to, stamp, kind) end
    if kind.to and kind.from ~= kind.to then remove(kind.from, kind) end
    for _, edge in ipairs(kind.edges) do call('HINCRBY', kind.flow_key, edge.flow, kind.count) end
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
    local bucket, runs = batch.bucket, queue.runs
    runs[bucket] = (runs[bucket] or 0) + 1
    batch.ended[job] = true
    if row.group then jobs.leave_group(batch.root, job, row, 'leased') end
    if row.unique then return jobs.delete(batch.root, job, row) end
    local count = queue.count + 1
    queue.jobs[count], queue.hashes[count], queue.count = job, row.key, count
    group_admissions.end_listed(batch.root, job)
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
    for _, kinds in ipairs({ batch.kinds, batch.chart_kinds }) do
        for _, kind in pairs(kinds) do
            if kind.count > 0 then write_kind(kind, batch.stamp) end
        end
    end
    for name, queue in pairs(batch.queues) do delete_jobs(batch, name, queue) end
    for queue, count in pairs(batch.rings) do jobs.ring_bell(batch.root, queue, count) end
end

return batches
