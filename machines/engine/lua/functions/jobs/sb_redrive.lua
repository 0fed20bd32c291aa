-- needs: arguments, completion, jobs, json, keys, partition_log, pulse, repairs, replies
-- sb_redrive: makes dead jobs ready again with their attempts reset, or delayed ones at once. An instance whose state
-- requested the job and is still active waits for it again. One handled job, by its id, needs 'force': no instance waits for
-- it.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue · 2 dead | delayed · 3 how many (1..500), or one job's id · 4 offset: jobs that an earlier call could not
--          move · 5 actor · 6 reason · 7 now (ms, or '') · 8 text for the log, or '' for no entry · 9 permit (as sb_fire: it
--          is the repair retry) · 10 'force': also a handled job, by its id, or '' · 11 of one job, as 3 of sb_reschedule
-- Returns: {OK, moved, passed over: another open job has the unique key, or an approval is missing, left in that place} ·
--          {OK, 0, 1, left, 'handled'}: the one job is handled, and was left ·
--          {APPROVAL, ...} as sb_fire, of one job alone · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(jobs * log(queue))
local MOST = 500

return function(KEYS, ARGV)
    local root, queue, place, limit = KEYS[1], ARGV[1], ARGV[2], arguments.parse_count(ARGV[3], 1, MOST)
    local skip = arguments.parse_whole(ARGV[4] or '') or 0
    arguments.need(queue, 'the queue is missing')
    arguments.need(place == 'dead' or place == 'delayed', 'a place is dead or delayed')
    arguments.need(ARGV[3], 'how many is missing')
    arguments.refuse(arguments.check('', '', ARGV[5] or '', ARGV[6] or '', ARGV[7] or ''))
    if place == 'dead' and not limit and redis.pcall('HGET', keys.job(root, ARGV[3]), 'place') == 'handled' then
        if ARGV[10] ~= 'force' then
            return { replies.OK, 0, 1, redis.call('ZCARD', jobs.places.dead(root, queue)), 'handled' }
        end
        place = 'handled'
    end
    local now, what = arguments.read_now(ARGV[7]), ARGV[8] or ''
    local key = jobs.places[place](root, queue)
    redis.call('ZCARD', keys.ready(root, queue)) -- these throw before any write when a key has another type
    redis.call('ZCARD', key)
    redis.call('XLEN', keys.log(root))
    local chosen = limit and redis.call('ZRANGE', key, skip, skip + limit - 1) or { ARGV[3] }
    local moved, passed = 0, 0
    if not limit and (ARGV[11] or '') ~= '' and not jobs.is_as_seen(jobs.read(root, ARGV[3]) or {}, ARGV[11]) then
        return { replies.OK, 0, 1, redis.call('ZCARD', key) }
    end
    for _, job in ipairs(chosen) do
        local refusal = repairs.check_job_approval(root, job, 'retry', ARGV[9] or '', ARGV[5] or '', now)
        if refusal and not limit then return refusal end
        if not refusal and completion.redrive(root, queue, place, job, now) then moved = moved + 1 else passed = passed + 1 end
    end
    if what ~= '' then
        partition_log.append(root, 'kind', 'queue', 'name', 'redrive', 'data',
            json.encode({ queue = queue, place = place, jobs = what }), 'actor', ARGV[5] or '', 'reason', ARGV[6] or '')
    end
    if moved > 0 then pulse.ring(root) end
    return { replies.OK, moved, passed, redis.call('ZCARD', key) }
end
