-- needs: arguments, jobs, json, keys, packed_jobs, pulse, replies, strings
-- sb_progress: stores the progress of a job's handler, if the token still holds the job.
-- KEYS:    1 root of the partition
-- ARGV:    1 job · 2 token · 3 done · 4 total ('' = not known) · 5 note · 6 now (ms, or '')
-- Returns: {OK} · {LOST, 'gone' | 'withdrawn' | 'taken back'} · {BADARG, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    O(1)
local MAX_NOTE = 800 -- bytes

local function parse_number(text)
    local found = tonumber(text)
    return found and found == found and found >= 0 and found < math.huge and found or nil
end

return function(KEYS, ARGV)
    local root, job, token = KEYS[1], ARGV[1], ARGV[2]
    arguments.need(job, 'the job is missing')
    local done, total = parse_number(ARGV[3] or ''), parse_number(ARGV[4] or '')
    arguments.need(done and (total or (ARGV[4] or '') == ''), 'done and total are numbers from 0')
    local now, clock = arguments.need_now(ARGV[6])
    local row, lost = jobs.read_held(root, job, token)
    if not row then return { replies.LOST, lost } end
    packed_jobs.spread(keys.job(root, job))
    redis.call('HSET', keys.job(root, job), 'progress', json.encode({
        done = done, total = total or json.null, note = strings.cut_head(ARGV[5] or '', MAX_NOTE), at = now,
    }))
    pulse.ring(root, clock)
    return { replies.OK }
end
