-- needs: arguments, commit, job_repair, jobs, replies
-- sb_mend: puts jobs back where their hashes say they are, after keys were damaged from outside: the given jobs, or those that
-- one place of a queue holds. A leased one that is in no lease gets one, for a moment where it should be over: whoever still
-- runs the job renews it, else it is taken back like any other.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 queue whose members are looked at, or '' · 3 their place: ready | leased | delayed | dead, or ''
--          · 4 where to go on among them ('0' at first), or a job's id · then up to 499 further ids of jobs
-- Returns: {OK, where to go on ('0' = no more), ready, leased, delayed, dead: jobs put back there, strays: taken out of a place
--          that is not theirs, ghosts: members without a job taken out, words put right (a place that is none, a token nobody
--          may hold, an attempt that is no number, a queue that was not listed), why, ...}: at its end what could not be put
--          right · {BADARG, why}
-- Notifies: <root>:pulse when anything was mended
-- Cost:    O(jobs * log(queue))
local MOST = 500

local function misfit(ARGV)
    local queue, place, first = ARGV[2] or '', ARGV[3] or '', ARGV[4] or ''
    if first == '' then return 'the jobs are missing' end
    if #ARGV > MOST + 3 then return 'at most ' .. MOST .. ' jobs are looked at in a call' end
    if (queue ~= '' or place ~= '') and not (queue ~= '' and jobs.places[place]) then
        return 'a place is ready, leased, delayed or dead, of a queue'
    end
    if queue ~= '' and not string.find(first, '^%d+$') then return 'to go on takes the number an earlier call gave' end
    return arguments.check('', '', '', '', ARGV[1])
end

return function(KEYS, ARGV)
    local root, bad = KEYS[1], misfit(ARGV)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, clock = arguments.read_now(ARGV[1])
    local tally, more = job_repair.new_tally(), '0'
    if ARGV[2] ~= '' then
        more = job_repair.repair_members(root, ARGV[2], ARGV[3], ARGV[4], MOST, now, tally)
    else
        for i = 4, #ARGV do job_repair.repair_job(root, ARGV[i], now, tally) end
    end
    for queue, count in pairs(tally.rings) do jobs.ring_bell(root, queue, count) end
    if job_repair.count_repairs(tally) > 0 then commit.ring_pulse(root, clock) end
    local reply = { replies.OK, more }
    for _, kind in ipairs(job_repair.KINDS) do reply[#reply + 1] = tally[kind] end
    for _, why in ipairs(tally.why) do reply[#reply + 1] = why end
    return reply
end
