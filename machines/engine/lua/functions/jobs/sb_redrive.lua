-- needs: arguments, commit, completion, jobs, json, keys, partition_log, repairs, replies
-- sb_redrive: makes dead jobs ready again, with all their attempts before them; or delayed ones at once. An instance that is
-- still in the state that asked for the work waits for it again.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue · 2 dead | delayed · 3 how many (1..500), or one job's id · 4 how many to pass over, which an earlier call
--          could not move · 5 actor · 6 reason · 7 now (ms, or '') · 8 what the log is to say of it, or ''
--          · 9 permit (as sb_fire: it does what the repair retry does)
-- Returns: {OK, moved, passed over: their unique key has another open job, or they take a second person, left in that place}
--          · {APPROVAL, ...} as sb_fire, of one job alone · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(jobs * log(queue))
local MOST = 500

return function(KEYS, ARGV)
    local root, queue, place, limit = KEYS[1], ARGV[1], ARGV[2], arguments.parse_count(ARGV[3], 1, MOST)
    local skip = arguments.parse_whole(ARGV[4] or '') or 0
    local bad = arguments.check_present(ARGV[3], 'how many')
        or arguments.check('', '', ARGV[5] or '', ARGV[6] or '', ARGV[7] or '')
    if place ~= 'dead' and place ~= 'delayed' then bad = 'a place is dead or delayed' end
    if not queue then bad = 'the queue is missing' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, what = arguments.read_now(ARGV[7]), ARGV[8] or ''
    local key = jobs.places[place](root, queue)
    redis.call('ZCARD', keys.ready(root, queue)) -- these throw where they could not be written
    redis.call('ZCARD', key)
    redis.call('XLEN', keys.log(root))
    local wanted = limit and redis.call('ZRANGE', key, skip, skip + limit - 1) or { ARGV[3] }
    local moved, passed = 0, 0
    for _, job in ipairs(wanted) do
        local held = repairs.check_job_approval(root, job, 'retry', ARGV[9] or '', ARGV[5] or '', now)
        if held and not limit then return held end
        if not held and completion.redrive(root, queue, place, job, now) then moved = moved + 1 else passed = passed + 1 end
    end
    if what ~= '' then
        partition_log.append(root, 'kind', 'queue', 'name', 'redrive', 'data',
            json.encode({ queue = queue, place = place, jobs = what }), 'actor', ARGV[5] or '', 'reason', ARGV[6] or '')
    end
    if moved > 0 then commit.ring_pulse(root) end
    return { replies.OK, moved, passed, redis.call('ZCARD', key) }
end
