-- needs: arguments, completion, jobs, json, keys, partition_log, pulse, repairs, replies, values
-- sb_purge: deletes jobs: the oldest ones of one place of a queue, or one job in any place. An instance that waits for a
-- deleted job gets error.invoke.<id> with the kind Purged or Withdrawn; a worker that runs it learns of it.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue ('' with a job) · 2 ready | delayed | dead | handled | job · 3 how many (1..500), or the job's id · 4
--          actor · 5 reason · 6 now (ms, or '') · 7 text for the log, or '' for no entry · 8 permit (as sb_fire: deleting a
--          job that an instance waits for is the repair cancel) · 9 ms: only dead or handled jobs that died at or before, or
--          '' · 10 as 3 of sb_reschedule
-- Returns: {OK, deleted, left in that place} · {BADARG, why} · {FAULT, why} when the first could not be deleted · {APPROVAL,
--          ...} as sb_fire, when the first needs an approval
-- Notifies: <root>:pulse
-- Cost:    O(jobs * log(queue)), and as sb_fire for each that an instance waits for
local MOST = 500
local PLACES = { ready = true, delayed = true, dead = true, handled = true }
local FAILURES = {
    purged = { error = 'the job was purged', kind = 'Purged', trace = '' },
    withdrawn = { error = 'the job was withdrawn', kind = 'Withdrawn', trace = '' },
}

-- Answers nil, or why the job still exists, and the reply when an approval is missing. `approval`: {permit, actor}.
local function delete_job(root, job, now, why, approval)
    local row = jobs.read(root, job)
    if not row then return 'there is no job ' .. job end
    local refusal = not jobs.has_ended(row.place)
        and repairs.check_job_approval(root, job, 'cancel', approval[1], approval[2], now)
    if refusal then return 'it needs the approval of a second person', refusal end
    local ok, reply = pcall(completion.remove, root, job, row, now, why, FAILURES[why])
    if not ok then return type(reply) == 'table' and reply.err or values.describe_error(reply) end
    if reply[1] ~= replies.OK then return reply[2] end
    return nil
end

-- Members of the place that are no jobs are removed, too.
local function delete_oldest(root, queue, place, limit, now, approval, before)
    local key, gone = jobs.places[place](root, queue), 0
    local found = before and redis.call('ZRANGEBYSCORE', key, '-inf', before, 'LIMIT', 0, limit)
        or redis.call('ZRANGE', key, 0, limit - 1)
    for _, job in ipairs(found) do
        if jobs.read(root, job) then
            local why, refusal = delete_job(root, job, now, 'purged', approval)
            if why then return gone, why, refusal end
        else
            redis.call('ZREM', key, job)
        end
        gone = gone + 1
    end
    return gone
end

local function write_log(root, name, data, actor, reason)
    partition_log.append(root, 'kind', 'queue', 'name', name, 'data', json.encode(data), 'actor', actor, 'reason', reason)
end

return function(KEYS, ARGV)
    local root, queue, place, limit = KEYS[1], ARGV[1], ARGV[2], arguments.parse_count(ARGV[3], 1, MOST)
    local actor, reason = ARGV[4] or '', ARGV[5] or ''
    arguments.refuse(arguments.check('', '', actor, reason, ARGV[6] or ''))
    if place == 'job' then
        arguments.need(ARGV[3], 'the job is missing')
    else
        arguments.need(PLACES[place or ''] and limit, 'a place is ready, delayed, dead or handled, and a limit 1 to ' .. MOST)
    end
    local before = (ARGV[9] or '') ~= '' and ARGV[9] or nil
    if before and (not jobs.has_ended(place) or not arguments.parse_count(before, 0, 1e14)) then
        arguments.refuse('a time is a whole number of ms, and for dead or handled jobs')
    end
    local now, gone, left, why, refusal = arguments.read_now(ARGV[6]), 0, 0
    local approval = { ARGV[8] or '', actor }
    redis.call('XLEN', keys.log(root)) -- throws before the first deletion
    if place == 'job' then
        local row = jobs.read(root, ARGV[3])
        if row and not jobs.is_as_seen(row, ARGV[10] or '') then return { replies.OK, 0, 0 } end
        why, refusal = delete_job(root, ARGV[3], now, 'withdrawn', approval)
        if not why then gone = 1 end
    else
        gone, why, refusal = delete_oldest(root, queue, place, limit, now, approval, before)
        left = redis.call('ZCARD', jobs.places[place](root, queue))
    end
    if why and gone == 0 then return refusal or { replies.FAULT, why } end
    local what = ARGV[7] or ''
    if place == 'job' then
        write_log(root, 'withdraw', { job = ARGV[3] }, actor, reason)
    elseif what ~= '' then
        write_log(root, 'purge', { queue = queue, place = place, jobs = what }, actor, reason)
    end
    pulse.ring(root)
    return { replies.OK, gone, left }
end
