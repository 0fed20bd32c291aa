-- needs: arguments, completion, jobs, pulse, queue_counters, replies, strings
-- sb_fail: ends an attempt of a job as failed: a later attempt, or the dead jobs and error.invoke.<id> for the instance.
-- KEYS:    1 root of the partition
-- ARGV:    1 job · 2 token · 3 error · 4 kind (exception class) · 5 trace · 6 '0' no further attempt · '1' by its attempts ·
--          'return' handed back, the attempt not counted · 7 now (ms, or '') · 8 delay in ms in place of the backoff; with
--          'return', '' is at once · 9 further names of the kind, between spaces: a job with one of them in its `stop` gets
--          no further attempt
-- Returns: {OK, 'delayed' | 'dead' | 'ready', ms due} · {LOST, 'gone' | 'withdrawn' | 'taken back'} · {BADARG, why}
--          · {FAULT, why}
-- Notifies: <root>:pulse
-- Cost:    as sb_fire, plus O(log(queue))
local MAX_ERROR, MAX_TRACE = 1000, 16384
local MAX_BACKOFF = 3600000 -- ms
local NO_FAILURE = { error = '', kind = '' }
local FIELDS = { 'instance', 'invoke', 'unique', 'priority', 'attempt', 'attempts', 'backoff', 'jitter',
    'stop', 'worker', 'taken', 'deadline', 'log', 'created', 'handled', 'traceparent', 'group', 'weight', 'batch', 'started' }

-- Computes the delay before the next attempt. Exponential: backoff, twice, four times that, an hour at most; a longer
-- backoff stays as it is. Jitter takes a random value between half of it and all, so that jobs that failed together do not
-- all return together.
local function compute_delay(job, row)
    local backoff = tonumber(row.backoff or jobs.DEFAULT.backoff)
    local wait = math.min(backoff * 2 ^ (tonumber(row.attempt) - 1), math.max(MAX_BACKOFF, backoff))
    if row.jitter == '0' then return wait end
    local chance = tonumber(string.sub(redis.sha1hex(job .. ' ' .. row.token), 1, 8), 16) / 2 ^ 32
    return math.ceil(wait * (1 - chance / 2))
end

local function hand_back(root, job, row, now, due)
    local attempt, log = tonumber(row.attempt) - 1, jobs.append_attempt(row, now, 'handed back', NO_FAILURE)
    if due then
        jobs.postpone(root, job, row, 'leased', now, due, 'attempt', attempt, 'token', '', 'worker', '', 'log', log)
        return { replies.OK, 'delayed', due }
    end
    jobs.make_ready(root, job, row, 'leased', now, 'attempt', attempt, 'token', '', 'worker', '', 'log', log)
    return { replies.OK, 'ready', 0 }
end

local function retry_later(root, job, row, now, due, failure)
    jobs.postpone(root, job, row, 'leased', now, due, 'error', failure.error, 'kind', failure.kind, 'trace', failure.trace,
        'token', '', 'log', row.log)
    queue_counters.increment(root, row.queue, 'failed')
    return { replies.OK, 'delayed', due }
end

local function kill(root, job, row, now, failure)
    local reply = completion.kill(root, job, row, now, failure)
    if reply[1] ~= replies.OK then return reply end
    queue_counters.increment(root, row.queue, 'failed')
    return { replies.OK, 'dead', 0 }
end

-- Tells whether one of the names forbids a further attempt.
local function is_stopped(row, names)
    if not row.stop then return false end
    for name in string.gmatch(names, '%S+') do
        if string.find(' ' .. row.stop .. ' ', ' ' .. name .. ' ', 1, true) then return true end
    end
    return false
end

return function(KEYS, ARGV)
    local root, job, token = KEYS[1], ARGV[1], ARGV[2]
    arguments.need(job, 'the job is missing')
    local delay = arguments.parse_count(ARGV[8], 0, arguments.MAX_MS)
    arguments.need(delay or (ARGV[8] or '') == '', 'a delay has 0 to ' .. arguments.MAX_MS .. ' ms')
    local now, clock = arguments.need_now(ARGV[7])
    local failure = {
        error = strings.cut_head(ARGV[3] or '', MAX_ERROR),
        kind = strings.cut_head(ARGV[4] or '', MAX_ERROR),
        trace = strings.cut_tail(ARGV[5] or '', MAX_TRACE),
    }
    local row, lost = jobs.read_held(root, job, token, unpack(FIELDS))
    if not row then return { replies.LOST, lost } end
    local reply
    if ARGV[6] == 'return' then
        reply = hand_back(root, job, row, now, delay and delay > 0 and now + delay)
    else
        row.log = jobs.append_attempt(row, now, failure.kind == 'Timeout' and row.deadline and 'timeout' or 'failed', failure)
        if ARGV[6] == '0' or jobs.is_last_attempt(row) or is_stopped(row, failure.kind .. ' ' .. (ARGV[9] or '')) then
            reply = kill(root, job, row, now, failure)
        else
            reply = retry_later(root, job, row, now, now + (delay or compute_delay(job, row)), failure)
        end
    end
    pulse.ring(root, clock)
    return reply
end
