-- needs: arguments, job_words, jobs, keys, packed_jobs, pulse, replies, strings, traces
-- sb_enqueue: adds jobs that no instance waits for to queues; all of them, or none.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · then 12 arguments for each job, at most 500 jobs: src, queue, input (JSON, or ''), priority
--          (0..9; for a job of a group followed by the group's weight, 0.1 to 10, and its name: '5 1 acme'), delay in ms
--          ('debounce 5000': it takes the place of the waiting job with this unique key and begins the delay anew), unique key
--          or '', attempts (1..100), backoff in ms, lease in ms, timeout in ms (0 = none), jitter ('1' or '0'), exception kinds
--          not to retry (between spaces) · after the arguments of a single job, optionally, an idempotency key of 1 to 200
--          bytes: for a day, the same key adds no other job to the partition · behind that ('' for none), optionally, a W3C
--          traceparent: the handlers go on with that trace
-- Returns: {OK, job, {} or {field, value, ...}, ...}: the fields of an earlier open job that holds the unique key, or of the
--          job of an earlier call with the idempotency key while that job is there · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(jobs * log(queue))
local WORDS, MAX_JOBS = job_words.COUNT, 500
local MAX_KEY, KEEP_MS = 200, 86400000 -- bytes of an idempotency key; how long it is remembered

-- Answers the reply to an earlier call with this key; nil when there was none.
local function find_earlier(root, once)
    local job = redis.call('GET', keys.enqueued(root, once))
    return job and { replies.OK, job, packed_jobs.list_fields(jobs.read(root, job)) } or nil
end

local function enqueue_all(root, specs, now, added, once)
    for i, spec in ipairs(specs) do
        local job, is_earlier, before = jobs.enqueue(root, spec, now)
        added[i] = { job = job, there = is_earlier, before = before }
    end
    for queue in pairs(added.queues) do redis.call('SADD', keys.queues(root), queue) end
    if once then redis.call('SET', keys.enqueued(root, once), added[1].job, 'PX', KEEP_MS) end
end

local function undo(root, specs, added)
    for i = #added, 1, -1 do
        local one = added[i]
        if not one.there then
            jobs.undo_enqueue(root, one.job, specs[i], one.before)
        elseif one.before then
            jobs.undo_replace(root, one.job, one.before)
        end
    end
end

return function(KEYS, ARGV)
    local root, once = KEYS[1], nil
    local further = (#ARGV - 1) % WORDS -- the key, or the key and a traceparent
    local count = (#ARGV - 1 - further) / WORDS
    if further == 2 then traces.begin(ARGV[#ARGV]) end
    local key = further > 0 and ARGV[count * WORDS + 2] or ''
    if key ~= '' then once = key end
    arguments.refuse(arguments.check_root(root))
    if count < 1 or count > MAX_JOBS or further > 2 or once and count > 1 then
        arguments.refuse('each job comes in ' .. WORDS .. ' words, 1 to ' .. MAX_JOBS .. ' of them')
    end
    if once and (#once > MAX_KEY or not strings.is_valid(once)) then
        arguments.refuse('an idempotency key has at most ' .. MAX_KEY .. ' bytes of UTF-8')
    end
    local now, clock = arguments.need_now(ARGV[1])
    local specs, added, rings = {}, { queues = {} }, {}
    for i = 1, count do
        specs[i] = job_words.read(ARGV, 2 + (i - 1) * WORDS)
        arguments.refuse(job_words.check(specs[i]))
        added.queues[specs[i].queue] = true
    end
    redis.call('SCARD', keys.queues(root))
    local earlier = once and find_earlier(root, once)
    if earlier then return earlier end
    local ok, caught = pcall(enqueue_all, root, specs, now, added, once)
    if not ok then
        undo(root, specs, added)
        error(caught, 0)
    end
    local reply, news = { replies.OK }, false
    for i, one in ipairs(added) do
        local queue = specs[i].queue
        news = news or not one.there or one.before
        if not one.there and specs[i].delay == 0 then rings[queue] = (rings[queue] or 0) + 1 end
        reply[#reply + 1] = one.job
        reply[#reply + 1] = one.there and packed_jobs.list_fields(jobs.read(root, one.job)) or {}
    end
    for queue, number in pairs(rings) do jobs.ring_bell(root, queue, number) end
    if news then pulse.ring(root, clock) end
    return reply
end
