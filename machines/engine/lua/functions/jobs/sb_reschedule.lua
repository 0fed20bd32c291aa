-- needs: arguments, jobs, json, keys, partition_log, pulse, repairs, replies
-- sb_reschedule: has a ready or delayed job wait until another time, or moves it to another queue of its machine.
-- KEYS:    1 root of the partition
-- ARGV:    1 job · 2 until when it waits, in ms, or '' to leave that as it is · 3 its place, when it came there and its
--          queue, between spaces: a job that is elsewhere by now is left; '' for anywhere · 4 queue, or '' for its own ·
--          5 actor · 6 reason · 7 now (ms, or '') · 8 permit (as sb_fire: it is the repair retry)
-- Returns: {OK, 1} · {OK, 0}: the job is elsewhere, or another open job of that queue has its unique key · {APPROVAL, ...} as
--          sb_fire · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(log(queue))
local MAX_DELAY = 3.2e11 -- ten years

return function(KEYS, ARGV)
    local root, job, queue, actor = KEYS[1], ARGV[1], ARGV[4] or '', ARGV[5] or ''
    arguments.need(job, 'the job is missing')
    arguments.refuse(arguments.check('', '', actor, ARGV[6] or '', ARGV[7] or ''))
    local now = arguments.read_now(ARGV[7])
    local due = (ARGV[2] or '') ~= '' and arguments.parse_count(ARGV[2], 0, now + MAX_DELAY)
    arguments.need(due or ARGV[2] == '' and queue ~= '', 'a queue is missing, or a time in ms, at most ten years from now')
    if queue ~= '' then arguments.refuse(arguments.check_queue(queue)) end
    redis.call('XLEN', keys.log(root)) -- throws before any write when the key has another type
    local row = jobs.read(root, job)
    if not row or row.place ~= 'ready' and row.place ~= 'delayed' or not jobs.is_as_seen(row, ARGV[3] or '') then
        return { replies.OK, 0 }
    end
    local refusal = repairs.check_job_approval(root, job, 'retry', ARGV[8] or '', actor, now)
    if refusal then return refusal end
    if queue == '' then queue = row.queue end
    if not due and queue == row.queue or not jobs.reschedule(root, job, row, queue, due or nil, now) then
        return { replies.OK, 0 }
    end
    partition_log.append(root, 'kind', 'queue', 'name', 'reschedule', 'data',
        json.encode({ job = job, queue = queue, ['until'] = due or nil }), 'actor', actor, 'reason', ARGV[6] or '')
    pulse.ring(root)
    return { replies.OK, 1 }
end
