-- needs: arguments, job_repair, jobs, pulse, replies
-- sb_mend: repairs the places of jobs after keys were damaged from outside: each job goes where its hash says. Checks the
-- given jobs, or the members of one place of a queue. A leased job without a lease gets a new one, at least for a short
-- time: a worker that still runs it renews the lease, else it expires.
-- A dead job whose instance no longer waits for it goes to the handled ones.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 queue whose members are checked, or '' · 3 their place: ready | leased | delayed | dead |
--          handled, members (jobs of groups with limits), or '' · 4 cursor ('0' at first), or a job's id · then up to 499
--          further ids of jobs
-- Returns: {OK, next cursor ('0' = no more), ready, leased, delayed, dead: jobs added there (handled ones
--          count as dead), strays: removed from a wrong place, ghosts: removed members without a job,
--          words: repaired fields (an invalid place, a token without a lease, an attempt that is no number,
--          a queue that was not listed), why, ...}: last the repairs that failed · {BADARG, why}
-- Notifies:<root>:pulse after a repair
-- Cost:    O(jobs * log(queue))
local MOST, PAGE = 500, 250 -- jobs that are named in a call; members of a place that it reads

local function check_arguments(ARGV)
    local queue, place, first = ARGV[2] or '', ARGV[3] or '', ARGV[4] or ''
    arguments.need(first ~= '', 'the jobs are missing')
    arguments.need(#ARGV <= MOST + 3, 'at most ' .. MOST .. ' jobs are checked in a call')
    local is_place = queue ~= '' and (jobs.places[place] or place == 'members')
    arguments.need(is_place or queue == '' and place == '', 'a place is ready, leased, delayed, dead or handled, of a queue')
    arguments.need(queue == '' or string.find(first, '^%d+$'), 'a cursor is the number that an earlier call answered')
end
return function(KEYS, ARGV)
    local root = KEYS[1]
    check_arguments(ARGV)
    local now, clock = arguments.need_now(ARGV[1])
    local tally, next_cursor = job_repair.new_tally(), '0'
    if ARGV[2] ~= '' then
        next_cursor = job_repair.repair_members(root, ARGV[2], ARGV[3], ARGV[4], PAGE, now, tally)
    else
        for i = 4, #ARGV do job_repair.repair_job(root, ARGV[i], now, tally) end
    end
    for queue, count in pairs(tally.rings) do jobs.ring_bell(root, queue, count) end
    if job_repair.count_repairs(tally) > 0 then pulse.ring(root, clock) end
    local reply = { replies.OK, next_cursor }
    for _, kind in ipairs(job_repair.KINDS) do reply[#reply + 1] = tally[kind] end
    for _, why in ipairs(tally.why) do reply[#reply + 1] = why end
    return reply
end
