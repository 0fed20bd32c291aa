-- needs: arguments, jobs, keys, replies
-- sb_jobs: jobs of one queue in one place, first due first; or, with a job's id as the place, that one job.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 queue ('' with a job id) · 2 ready | leased | delayed | dead | job · 3 limit (1..1000), or the job's id
-- Returns: {OK, job, {field, value, ...}, {instance field, value, ...}, ...} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log(queue) + limit)
local PLACES = { ready = keys.ready, leased = keys.leased, delayed = keys.delayed, dead = keys.dead }

local function listed(root, queue, place, limit)
    local key = PLACES[place](root, queue)
    if place == 'dead' then return redis.call('ZREVRANGE', key, 0, limit - 1) end
    return redis.call('ZRANGE', key, 0, limit - 1)
end

return function(KEYS, ARGV)
    local root, queue, place, limit = KEYS[1], ARGV[1], ARGV[2], arguments.count(ARGV[3], 1, 1000)
    local found
    if place == 'job' and ARGV[3] then
        found = { ARGV[3] }
    elseif PLACES[place or ''] and limit then
        found = listed(root, queue, place, limit)
    else
        return { replies.BAD_ARGUMENT, 'a place is ready, leased, delayed or dead, and a limit 1 to 1000' }
    end
    local reply = { replies.OK }
    for _, job in ipairs(found) do
        local row = redis.call('HGETALL', keys.job(root, job))
        if #row > 0 then
            local instance = redis.call('HGET', keys.job(root, job), 'instance')
            reply[#reply + 1] = job
            reply[#reply + 1] = row
            reply[#reply + 1] = redis.call('HGETALL', keys.instance(root, instance))
        end
    end
    return reply
end
