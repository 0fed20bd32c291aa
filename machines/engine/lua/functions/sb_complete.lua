-- needs: arguments, commit, finishing, jobs, json, replies, values
-- sb_complete: ends a job and moves its instance by done.invoke.<id>, together, if the token still holds the job.
-- KEYS:    1 root of the partition
-- ARGV:    1 job · 2 token · 3 result (JSON, or '') · 4 now (ms, or '')
-- Returns: {OK, transition ids, '0', instance JSON} the instance moved · {OK} nobody waited for it
--          · {LOST, 'gone' | 'taken back'} · {REFUSED, explanation JSON} the step failed, the job is still held
--          · {BADPAYLOAD, why, ''} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse
-- Cost:    as sb_fire, plus O(log(queue))
local MAX_RESULT = 65536

local function parse(text)
    if text == '' then return nil end
    if #text > MAX_RESULT then return nil, 'a result has at most ' .. MAX_RESULT .. ' bytes, not ' .. #text end
    local ok, result = pcall(json.decode, text)
    if not ok then return nil, values.message(result) end
    return result
end

return function(KEYS, ARGV)
    local root, job, token = KEYS[1], ARGV[1], ARGV[2]
    local bad = arguments.missing(job, 'the job') or arguments.misfit('', '', '', '', ARGV[4] or '')
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now = arguments.now(ARGV[4])
    local row = jobs.read(root, job)
    local lost = jobs.lost(row, token)
    if lost then return { replies.LOST, lost } end
    local result, why = parse(ARGV[3] or '')
    if why then return { replies.BAD_PAYLOAD, why, '' } end
    local ctx = finishing.waiting(root, row, job, now)
    local reply = { replies.OK }
    if ctx then reply = finishing.tell(ctx, job, 'done.invoke.' .. row.invoke, { result = result }) end
    if reply[1] ~= replies.OK then return reply end
    jobs.remove(root, job)
    commit.pulse(root)
    return reply
end
