-- needs: completion, group_admissions, jobs, json, keys, queue_counters, replies
-- Takes back jobs whose lease has expired and makes delayed jobs ready whose time has come.
local due_jobs = {}

local LOST = { error = 'the worker stopped renewing its lease', kind = 'LeaseExpired', trace = '' }
local TIMED_OUT = { error = 'the job ran longer than its timeout', kind = 'Timeout', trace = '' }
local RETRY_MS = 5000 -- pause before the next try for a job that could not be taken back
local MAX_QUEUES = 1000 -- queues
local SLACK_MS = 1000 -- by which a lease may seem to begin in the future

-- Starts the counts of a pass: moved jobs, errors, and the next due time in ms. `leeway`: ms after its end for which a lease
-- is left alone; `over` tells whether the call has used its time; `since`: ms of the clock when it had been set, or nil.
function due_jobs.new_tally(leeway, over, since)
    return { taken_back = 0, woken = 0, dead = 0, due = math.huge, leeway = leeway, is_over = over, why = {}, since = since }
end

-- Lets a lease begin anew: it began before the clock was set, so neither its end nor the deadline of the job counts.
local function restart_lease(root, queue, job, row, now)
    local lease_end = now + jobs.get_lease(row)
    local timeout = row.deadline and tonumber(row.timeout)
    if timeout then
        lease_end = math.min(lease_end, now + timeout)
        redis.call('HSET', keys.job(root, job), 'deadline', json.number(now + timeout))
    end
    redis.call('ZADD', keys.leased(root, queue), lease_end, job)
end

-- Restarts the leases that end too late: they began by a clock that was set back since. The latest `limit` are looked at.
function due_jobs.shorten_leases(root, queues, now, limit)
    for _, queue in ipairs(queues) do
        local found = redis.call('ZREVRANGE', keys.leased(root, queue), 0, limit - 1, 'WITHSCORES')
        for i = 1, #found, 2 do
            local job, lease_end = found[i], tonumber(found[i + 1])
            if lease_end <= now then break end
            local row = jobs.read(root, job)
            if row and lease_end - jobs.get_lease(row) > now + SLACK_MS then restart_lease(root, queue, job, row, now) end
        end
    end
end

-- Describes a thrown value in words.
function due_jobs.describe_error(caught)
    return type(caught) == 'table' and (caught.err or caught.sb) or tostring(caught)
end

function due_jobs.count_moved(tally)
    return tally.taken_back + tally.woken + tally.dead
end

-- Tells whether the partition has nothing that could become due. Two commands for any number of queues.
function due_jobs.has_none(root, queues)
    if #queues > MAX_QUEUES then return false end
    local names = { keys.timers(root), keys.late(root), keys.outbox(root) }
    for i, queue in ipairs(queues) do
        names[2 * i + 2], names[2 * i + 3] = keys.leased(root, queue), keys.delayed(root, queue)
    end
    return redis.call('EXISTS', unpack(names)) == 0
end

local function kill(root, queue, job, row, now, tally, why)
    local ok, reply = pcall(completion.kill, root, job, row, now, why)
    if ok and reply[1] == replies.OK then
        tally.dead = tally.dead + 1
        pcall(group_admissions.abandon, root, job, row)
    else
        redis.call('ZADD', keys.leased(root, queue), now + RETRY_MS, job) -- so that it does not block the jobs behind it
    end
end

local function take_back(root, queue, job, lease_end, now, tally)
    local row = jobs.read(root, job)
    if not row then
        redis.call('ZREM', keys.leased(root, queue), job)
        return
    end
    local since = tally.since
    if since and now >= since and lease_end - jobs.get_lease(row) < since then
        return restart_lease(root, queue, job, row, now)
    end
    local timed_out = row.deadline and now >= tonumber(row.deadline)
    local why = timed_out and TIMED_OUT or LOST
    row.log = jobs.append_attempt(row, now, timed_out and 'timeout' or 'lost', why)
    if jobs.is_last_attempt(row) then return kill(root, queue, job, row, now, tally, why) end
    jobs.make_ready(root, job, row, 'leased', now, 'token', '', 'error', why.error, 'kind', why.kind, 'log', row.log)
    pcall(group_admissions.abandon, root, job, row)
    tally.taken_back = tally.taken_back + 1
end

local function recover_expired(root, queue, now, limit, tally)
    local before = tally.taken_back + tally.dead
    local leased, latest = keys.leased(root, queue), now - tally.leeway
    local ended = redis.call('ZRANGEBYSCORE', leased, '-inf', latest, 'WITHSCORES', 'LIMIT', 0, limit)
    for i = 1, #ended, 2 do
        take_back(root, queue, ended[i], tonumber(ended[i + 1]), now, tally)
        if tally.is_over() then break end
    end
    local lost = tally.taken_back + tally.dead - before
    if lost > 0 then queue_counters.increment(root, queue, 'lost', lost) end
end

-- Answers when the first member of a sorted set is due; math.huge for an empty one.
function due_jobs.find_first(key)
    return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or math.huge)
end

local function sweep_queue(root, queue, now, limit, tally)
    local leased, delayed = keys.leased(root, queue), keys.delayed(root, queue)
    local ending, waking = due_jobs.find_first(leased) + tally.leeway, due_jobs.find_first(delayed)
    if ending <= now and not (due_jobs.count_moved(tally) > 0 and tally.is_over()) then
        recover_expired(root, queue, now, limit, tally)
        ending = due_jobs.find_first(leased) + tally.leeway
    end
    if waking <= now then
        tally.woken = tally.woken + jobs.wake_delayed(root, queue, now, limit)
        waking = due_jobs.find_first(delayed)
    end
    tally.due = math.min(tally.due, ending, waking)
end

-- Sweeps the queues and adds to the tally. An error in one queue does not stop the others.
function due_jobs.sweep(root, queues, now, limit, tally)
    for _, queue in ipairs(queues) do
        local ok, caught = pcall(sweep_queue, root, queue, now, limit, tally)
        if not ok then table.insert(tally.why, due_jobs.describe_error(caught)) end
    end
end

return due_jobs
