-- needs: arguments, commit, finishing, jobs, keys, replies, texts
-- sb_fail: gives a job back as failed: a later attempt, or the dead and error.invoke.<id> for its instance.
-- KEYS:    1 root of the partition
-- ARGV:    1 job · 2 token · 3 error · 4 kind (exception class) · 5 trace · 6 '0' never again · '1' by its attempts ·
--          'return' handed back unworked, the attempt not counted · 7 now (ms, or '') · 8 with 'return': ms until it is
--          ready again ('' = at once)
-- Returns: {OK, 'delayed' | 'dead' | 'ready', ms due} · {LOST, 'gone' | 'taken back'} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse
-- Cost:    as sb_fire, plus O(log(queue))
local MAX_ERROR, MAX_TRACE = 1000, 16384

local function hand_back(root, job, row, due)
    if due then
        jobs.move(root, job, row.queue, 'leased', 'delayed', due)
    else
        jobs.release(root, job, row.queue, 'leased')
    end
    redis.call('HSET', keys.job(root, job), 'attempt', tonumber(row.attempt) - 1, 'token', '', 'worker', '')
    return { replies.OK, due and 'delayed' or 'ready', due or 0 }
end

local function try_later(root, job, row, now, failure)
    local due = jobs.delay(root, job, row, now)
    redis.call('HSET', keys.job(root, job), 'error', failure.error, 'kind', failure.kind, 'trace', failure.trace, 'token', '')
    return { replies.OK, 'delayed', due }
end

return function(KEYS, ARGV)
    local root, job, token = KEYS[1], ARGV[1], ARGV[2]
    local bad = arguments.missing(job, 'the job') or arguments.misfit('', '', '', '', ARGV[7] or '')
    local delay = arguments.count(ARGV[8], 0, arguments.MAX_MS)
    if (ARGV[8] or '') ~= '' and not delay then bad = 'a delay has 0 to ' .. arguments.MAX_MS .. ' ms' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now = arguments.now(ARGV[7])
    local failure = {
        error = texts.cut(ARGV[3] or '', MAX_ERROR),
        kind = texts.cut(ARGV[4] or '', MAX_ERROR),
        trace = texts.tail(ARGV[5] or '', MAX_TRACE),
    }
    local row = jobs.read(root, job)
    local lost = jobs.lost(row, token)
    if lost then return { replies.LOST, lost } end
    local reply
    if ARGV[6] == 'return' then
        reply = hand_back(root, job, row, delay and delay > 0 and now + delay)
    elseif ARGV[6] ~= '0' and tonumber(row.attempt) < tonumber(row.attempts) then
        reply = try_later(root, job, row, now, failure)
    else
        reply = finishing.bury(root, job, row, now, failure)
        if reply[1] == replies.OK then reply = { replies.OK, 'dead', 0 } end
    end
    commit.pulse(root)
    return reply
end
