-- needs: arguments, jobs, json, keys, partition_log, pulse, queue_limits, replies
-- sb_queue: pauses, resumes or limits one queue. The log says who did it and why.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue · 2 pause | resume | limit · 3 actor · 4 reason · 5 now (ms, or '') · 6 with limit, concurrency of this
--          partition ('0' = none, '' = as the definition declares) · 7 with limit, rate: <count>/<ms>, '0' or '' likewise
-- Returns: {OK} · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(1)
local ACTIONS = { pause = true, resume = true, limit = true }

local function check_arguments(queue, action, concurrency, rate)
    if not queue or #queue > 64 or not string.find(queue, '^[%a_][%w_.-]*$') then
        return 'a queue has a name of letters, digits, _ . and -'
    end
    if not ACTIONS[action or ''] then return 'the action is pause, resume or limit' end
    if concurrency ~= '' and not arguments.parse_count(concurrency, 0, 1e9) then
        return 'concurrency is a whole number, 0 for no limit'
    end
    if rate ~= '' and rate ~= '0' and not queue_limits.parse_rate(rate) then
        return 'a rate is <count>/<ms>, or 0 for no limit'
    end
    return nil
end

local function store_limit(key, field, value)
    if value == '' then redis.call('HDEL', key, field) else redis.call('HSET', key, field, value) end
end

return function(KEYS, ARGV)
    local root, queue, action = KEYS[1], ARGV[1], ARGV[2]
    local actor, reason = ARGV[3] or '', ARGV[4] or ''
    local concurrency, rate = ARGV[6] or '', ARGV[7] or ''
    local bad = check_arguments(queue, action, concurrency, rate) or arguments.check('', '', actor, reason, ARGV[5] or '')
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, key = arguments.read_now(ARGV[5]), keys.rules(root, queue)
    local waiting = redis.call('ZCARD', keys.ready(root, queue))
    redis.call('HLEN', key) -- these throw before any write when a key has another type
    redis.call('SCARD', keys.queues(root))
    partition_log.append(root, 'kind', 'queue', 'name', action, 'data',
        json.encode({ queue = queue, concurrency = concurrency, rate = rate }), 'actor', actor, 'reason', reason)
    if action == 'pause' then
        redis.call('HSET', key, 'paused', now, 'actor', actor, 'reason', reason)
    elseif action == 'resume' then
        redis.call('HDEL', key, 'paused', 'actor', 'reason')
    else
        store_limit(key, 'concurrency', concurrency)
        store_limit(key, 'rate', rate)
        redis.call('HDEL', key, 'tat')
    end
    if action ~= 'resume' then redis.call('SADD', keys.queues(root), queue) end -- a queue with rules is listed
    if action ~= 'pause' and waiting > 0 then jobs.ring_bell(root, queue, waiting) end
    pulse.ring(root)
    return { replies.OK }
end
