-- needs: arguments, commit, completion, jobs, json, keys, partition_log, repairs, replies, values
-- sb_purge: takes jobs away for good: the oldest of one place of a queue, or one job wherever it is. An instance that waits
-- for one gets error.invoke.<id> with the kind Purged or Withdrawn; a worker that runs it learns so.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue ('' with a job) · 2 ready | delayed | dead | job · 3 how many (1..500), or the job's id · 4 actor
--          · 5 reason · 6 now (ms, or '') · 7 what the log is to say of it, or ''
--          · 8 permit (as sb_fire: to take a job away that an instance waits for does what the repair cancel does)
-- Returns: {OK, taken away, left in that place} · {BADARG, why} · {FAULT, why} when the first could not be taken away
--          · {APPROVAL, ...} as sb_fire, when the first takes a second person
-- Notifies: <root>:pulse
-- Cost:    O(jobs * log(queue)), and as sb_fire for each that an instance waits for
local MOST = 500
local PLACES = { ready = true, delayed = true, dead = true }
local FAILURES = {
    purged = { error = 'the job was purged', kind = 'Purged', trace = '' },
    withdrawn = { error = 'the job was withdrawn', kind = 'Withdrawn', trace = '' },
}

-- Nothing; or why it is still there, and the reply where a second person is asked for. `alone`: {permit, actor}.
local function drop(root, job, now, why, alone)
    local row = jobs.read(root, job)
    if not row then return 'there is no job ' .. job end
    local held = row.place ~= 'dead' and repairs.check_job_approval(root, job, 'cancel', alone[1], alone[2], now)
    if held then return 'it takes a second person', held end
    local ok, reply = pcall(completion.remove, root, job, row, now, why, FAILURES[why])
    if not ok then return type(reply) == 'table' and reply.err or values.describe_error(reply) end
    if reply[1] ~= replies.OK then return reply[2] end
    return nil
end

-- What stands in the place and is no job goes as well.
local function purge(root, queue, place, limit, now, alone)
    local key, gone = jobs.places[place](root, queue), 0
    for _, job in ipairs(redis.call('ZRANGE', key, 0, limit - 1)) do
        if jobs.read(root, job) then
            local why, held = drop(root, job, now, 'purged', alone)
            if why then return gone, why, held end
        else
            redis.call('ZREM', key, job)
        end
        gone = gone + 1
    end
    return gone
end

local function log(root, name, data, actor, reason)
    partition_log.append(root, 'kind', 'queue', 'name', name, 'data', json.encode(data), 'actor', actor, 'reason', reason)
end

return function(KEYS, ARGV)
    local root, queue, place, limit = KEYS[1], ARGV[1], ARGV[2], arguments.parse_count(ARGV[3], 1, MOST)
    local actor, reason = ARGV[4] or '', ARGV[5] or ''
    local bad = arguments.check('', '', actor, reason, ARGV[6] or '')
    if place == 'job' then
        bad = bad or arguments.check_present(ARGV[3], 'the job')
    elseif not PLACES[place or ''] or not limit then
        bad = 'a place is ready, delayed or dead, and a limit 1 to ' .. MOST
    end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, gone, left, why, held = arguments.read_now(ARGV[6]), 0, 0
    local alone = { ARGV[8] or '', actor }
    redis.call('XLEN', keys.log(root)) -- throws before the first is taken away
    if place == 'job' then
        why, held = drop(root, ARGV[3], now, 'withdrawn', alone)
        if not why then gone = 1 end
    else
        gone, why, held = purge(root, queue, place, limit, now, alone)
        left = redis.call('ZCARD', jobs.places[place](root, queue))
    end
    if why and gone == 0 then return held or { replies.FAULT, why } end
    local what = ARGV[7] or ''
    if place == 'job' then
        log(root, 'withdraw', { job = ARGV[3] }, actor, reason)
    elseif what ~= '' then
        log(root, 'purge', { queue = queue, place = place, jobs = what }, actor, reason)
    end
    commit.ring_pulse(root)
    return { replies.OK, gone, left }
end
