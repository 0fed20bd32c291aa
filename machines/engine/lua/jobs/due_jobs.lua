-- needs: completion, jobs, keys, queue_counters, replies
-- Jobs whose lease ran out are taken back, delayed ones whose time has come become ready.
local due_jobs = {}

local LOST = { error = 'the worker stopped renewing its lease', kind = 'LeaseExpired', trace = '' }
local LATE = { error = 'the job ran longer than its timeout', kind = 'Timeout', trace = '' }
local RETRY_MS = 5000 -- a job that cannot be taken back now is tried again
local MANY = 1000 -- queues

-- What a pass has moved, what went wrong, and the ms of what is due next. `leeway`: ms for which a lease that ended is left
-- alone; `over` tells when a call has taken long enough.
function due_jobs.tally(leeway, over)
    return { back = 0, woken = 0, buried = 0, due = math.huge, leeway = leeway, over = over, why = {} }
end

-- What was thrown, in words.
function due_jobs.words(caught)
    return type(caught) == 'table' and (caught.err or caught.sb) or tostring(caught)
end

function due_jobs.moved(tally)
    return tally.back + tally.woken + tally.buried
end

-- Does the partition hold nothing at all that may become due? Two calls, however many queues there are.
function due_jobs.bare(root, queues)
    if #queues > MANY then return false end
    local names = { keys.timers(root), keys.late(root), keys.outbox(root) }
    for i, queue in ipairs(queues) do
        names[2 * i + 2], names[2 * i + 3] = keys.leased(root, queue), keys.delayed(root, queue)
    end
    return redis.call('EXISTS', unpack(names)) == 0
end

local function bury(root, queue, job, row, now, tally, why)
    local ok, reply = pcall(completion.bury, root, job, row, now, why)
    if ok and reply[1] == replies.OK then
        tally.buried = tally.buried + 1
    else
        redis.call('ZADD', keys.leased(root, queue), now + RETRY_MS, job) -- it must not keep those behind it waiting
    end
end

local function take_back(root, queue, job, now, tally)
    local row = jobs.read(root, job)
    if not row then
        redis.call('ZREM', keys.leased(root, queue), job)
        return
    end
    local late = row.deadline and now >= tonumber(row.deadline)
    local why = late and LATE or LOST
    row.log = jobs.logged(row, now, late and 'timeout' or 'lost', why)
    if jobs.spent(row) then return bury(root, queue, job, row, now, tally, why) end
    jobs.release(root, job, row, 'leased', now, 'token', '', 'error', why.error, 'kind', why.kind, 'log', row.log)
    tally.back = tally.back + 1
end

local function recover(root, queue, now, limit, tally)
    local before = tally.back + tally.buried
    for _, job in ipairs(redis.call('ZRANGEBYSCORE', keys.leased(root, queue), '-inf', now - tally.leeway, 'LIMIT', 0, limit)) do
        take_back(root, queue, job, now, tally)
        if tally.over() then break end
    end
    local lost = tally.back + tally.buried - before
    if lost > 0 then queue_counters.count(root, queue, 'lost', lost) end
end

-- When the first of a sorted set is due; math.huge for none.
function due_jobs.first(key)
    return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or math.huge)
end

local function pass(root, queue, now, limit, tally)
    local leased, delayed = keys.leased(root, queue), keys.delayed(root, queue)
    local ending, waking = due_jobs.first(leased) + tally.leeway, due_jobs.first(delayed)
    if ending <= now and not (due_jobs.moved(tally) > 0 and tally.over()) then
        recover(root, queue, now, limit, tally)
        ending = due_jobs.first(leased) + tally.leeway
    end
    if waking <= now then
        tally.woken = tally.woken + jobs.wake(root, queue, now, limit)
        waking = due_jobs.first(delayed)
    end
    tally.due = math.min(tally.due, ending, waking)
end

-- Adds to the tally. What is wrong with one queue keeps no other waiting.
function due_jobs.sweep(root, queues, now, limit, tally)
    for _, queue in ipairs(queues) do
        local ok, caught = pcall(pass, root, queue, now, limit, tally)
        if not ok then table.insert(tally.why, due_jobs.words(caught)) end
    end
end

return due_jobs
