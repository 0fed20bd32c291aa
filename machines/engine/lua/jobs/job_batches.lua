-- needs: job_words, jobs, json, keys
-- Batches: sets of jobs of one partition with counts of those that are open, done and failed, and jobs that are enqueued when
-- none is open. The call that ends a job counts it. A job leaves its place once, so it is counted once.
local job_batches = {}

local KEEP_MS = 604800000 -- a week: how long a batch that has ended, or that was not stored in full, is kept
local FIGURES = { 'total', 'open', 'done', 'failed', 'added', 'created', 'ended', 'error', 'after' }
local NUMBERS, ANSWERED = 5, 8 -- the first so many are numbers, and are in a reply

-- Reads the figures of a batch; nil when there is none. One that is damaged counts as 0: no job must stay for it.
function job_batches.read(root, id)
    local found = redis.pcall('HMGET', keys.batch(root, id), unpack(FIGURES))
    if found.err or not found[1] then return nil end
    local batch = {}
    for i, name in ipairs(FIGURES) do batch[name] = i <= NUMBERS and (tonumber(found[i]) or 0) or found[i] or nil end
    return batch
end

-- Begins a batch. It has jobs that come after the newest one: an earlier batch of the same id may have left older ones.
function job_batches.begin(root, now)
    return { total = 0, open = 0, done = 0, failed = 0, added = 0, created = json.number(now),
        after = redis.call('HGET', keys.meta(root), 'jobs') or '0' }
end

-- Tells whether a job that names the id of the batch belongs to it. The numbers of jobs only grow.
function job_batches.has_job(batch, job)
    return tonumber(string.match(job, '%d+$') or 0) > (tonumber(batch.after) or 0)
end

-- Lists the figures as a reply has them.
function job_batches.list(batch)
    local flat = {}
    for i = 1, ANSWERED do flat[i] = tostring(batch[FIGURES[i]] or '') end
    return flat
end

-- Writes figures that have changed. What is complete and has not ended is kept.
function job_batches.write(root, id, batch)
    local key, flat = keys.batch(root, id), {}
    for _, name in ipairs(FIGURES) do
        if batch[name] then flat[#flat + 1], flat[#flat + 2] = name, batch[name] end
    end
    redis.call('HSET', key, unpack(flat))
    if batch.ended or batch.added < batch.total then
        redis.call('PEXPIRE', key, KEEP_MS)
    else
        redis.call('PERSIST', key)
    end
end

-- Enqueues a job that the batch announces its end by. Its input is by default the figures.
local function enqueue_callback(root, id, batch, text, now)
    local spec = job_words.read(cjson.decode(text), 1)
    if spec.input == '' then
        spec.input = json.encode({ batch = id, total = batch.total, done = batch.done, failed = batch.failed })
    end
    redis.call('SADD', keys.queues(root), spec.queue)
    jobs.enqueue(root, spec, now)
    if spec.delay == 0 then jobs.ring_bell(root, spec.queue) end
end

-- Each callback is enqueued once, as its field is removed with it.
local function call_back(root, id, batch, now)
    local key = keys.batch(root, id)
    for _, name in ipairs({ batch.failed == 0 and 'on_success' or 'on_failure', 'on_end' }) do
        local text = redis.call('HGET', key, name)
        if text then
            local ok, caught = pcall(enqueue_callback, root, id, batch, text, now)
            if ok then redis.call('HDEL', key, name) else
                batch.error = name .. ': ' .. (type(caught) == 'table' and caught.err or tostring(caught))
            end
        end
    end
end

-- Moves jobs of a batch from one count to another: open, done, failed. When the last one ends, it enqueues the callbacks.
-- Does nothing for a batch that is no longer kept.
function job_batches.count(root, id, from, to, moved, now)
    local batch, number = job_batches.read(root, id), 0
    for _, job in ipairs(batch and moved or {}) do number = number + (job_batches.has_job(batch, job) and 1 or 0) end
    if number == 0 then return end
    batch[from], batch[to] = batch[from] - number, batch[to] + number
    if batch.open == 0 then
        batch.ended = batch.ended or json.number(now)
        call_back(root, id, batch, now)
    end
    job_batches.write(root, id, batch)
end

return job_batches
