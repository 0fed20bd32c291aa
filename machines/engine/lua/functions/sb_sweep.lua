-- needs: arguments, commit, finishing, jobs, keys, replies, stats
-- sb_sweep: takes back jobs whose lease ran out (each counts as an attempt) and wakes delayed ones that are due.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 limit for each queue (1..1000)
-- Returns: {OK, taken back, woken, buried} · {BADARG, why}
-- Notifies: <root>:pulse when anything moved
-- Cost:    O(queues + jobs moved * log(queue))
local LOST = { error = 'the worker stopped renewing its lease', kind = 'LeaseExpired', trace = '' }
local LATE = { error = 'the job ran longer than its timeout', kind = 'Timeout', trace = '' }

local function reason(row, now)
    return row.deadline and now >= tonumber(row.deadline) and LATE or LOST
end

local function recover(root, queue, now, limit)
    local back, buried = 0, 0
    local expired = redis.call('ZRANGEBYSCORE', keys.leased(root, queue), '-inf', now, 'LIMIT', 0, limit)
    for _, job in ipairs(expired) do
        local row = jobs.read(root, job)
        if not row then
            redis.call('ZREM', keys.leased(root, queue), job)
        elseif not jobs.spent(row) then
            local why = reason(row, now)
            jobs.release(root, job, row, 'leased', now, 'token', '', 'error', why.error, 'kind', why.kind)
            back = back + 1
        else
            local ok, reply = pcall(finishing.bury, root, job, row, now, reason(row, now))
            if ok and reply[1] == replies.OK then buried = buried + 1 end
        end
    end
    if back + buried > 0 then stats.count(root, queue, 'lost', back + buried) end
    return back, buried
end

return function(KEYS, ARGV)
    local root, limit = KEYS[1], arguments.count(ARGV[2], 1, 1000)
    local bad = arguments.misfit('', '', '', '', ARGV[1] or '')
    if not limit then bad = 'limit is 1 to 1000' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, clock = arguments.now(ARGV[1])
    local back, woken, buried = 0, 0, 0
    for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do
        local taken, dead = recover(root, queue, now, limit)
        back, buried = back + taken, buried + dead
        woken = woken + jobs.wake(root, queue, now, limit)
    end
    if back + woken + buried > 0 then commit.pulse(root, clock) end
    return { replies.OK, back, woken, buried }
end
