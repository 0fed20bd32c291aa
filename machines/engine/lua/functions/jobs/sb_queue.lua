-- needs: arguments, group_limits, jobs, json, keys, partition_log, pulse, queue_limits, ready_order, replies
-- sb_queue: pauses, resumes or limits one queue, or one group of it. The log says who did it and why.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue · 2 pause | resume | limit · 3 actor · 4 reason · 5 now (ms, or '') · 6 with limit, concurrency ('0' =
--          none, '' = as the definition declares) · 7 with limit, rate: <count>/<ms> or
--          <count>/<ms>/<burst>, '0' or '' likewise · 8 group, '' for the queue · 9 'whole' where the limits of a queue are
--          those of all partitions, as of a group; else its share of this one
-- Returns: {OK} · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(1)
local ACTIONS = { pause = true, resume = true, limit = true }

local function check_arguments(queue, action, concurrency, rate, group)
    local why = arguments.check_queue(queue)
    if why then return why end
    if not ACTIONS[action or ''] then return 'the action is pause, resume or limit' end
    if concurrency ~= '' and not arguments.parse_count(concurrency, 0, 1e9) then
        return 'concurrency is a whole number, 0 for no limit'
    end
    if rate ~= '' and rate ~= '0' and not queue_limits.parse_rate(rate) then
        return 'a rate is <count>/<ms>, or 0 for no limit'
    end
    return ready_order.check_group(group)
end

local function change_queue(root, queue, key, action, now, call)
    if action == 'pause' then
        redis.call('HSET', key, 'paused', now, 'actor', call.actor, 'reason', call.reason)
    elseif action == 'resume' then
        redis.call('HDEL', key, 'paused', 'actor', 'reason')
    else
        queue_limits.store(root, queue, '', call.concurrency, call.rate, call.whole)
        redis.call('HDEL', key, 'tat')
        redis.call('ZREM', keys.arrivals(root, queue), '\0')
    end
end

-- Answers nil, or why the limits of the group cannot be stored.
local function change_group(root, queue, action, now, call)
    local fields = { concurrency = call.concurrency, rate = call.rate }
    if action == 'pause' then fields = { paused = now, actor = call.actor, reason = call.reason } end
    if action == 'resume' then fields = { paused = '', actor = '', reason = '' } end
    return group_limits.set(root, queue, call.group, fields)
end

return function(KEYS, ARGV)
    local root, queue, action = KEYS[1], ARGV[1], ARGV[2]
    local actor, reason = ARGV[3] or '', ARGV[4] or ''
    local concurrency, rate, group = ARGV[6] or '', ARGV[7] or '', ARGV[8] or ''
    local call = { actor = actor, reason = reason, concurrency = concurrency, rate = rate, group = group }
    call.whole = ARGV[9] == 'whole'
    arguments.refuse(check_arguments(queue, action, concurrency, rate, group))
    arguments.refuse(arguments.check('', '', actor, reason, ARGV[5] or ''))
    local now, key = arguments.read_now(ARGV[5]), keys.rules(root, queue)
    local waiting = redis.call('ZCARD', keys.ready(root, queue))
    redis.call('HLEN', key) -- these throw before any write when a key has another type
    redis.call('SCARD', keys.queues(root))
    if group ~= '' then arguments.refuse(change_group(root, queue, action, now, call)) end
    local data = { queue = queue, concurrency = concurrency, rate = rate, group = group ~= '' and group or nil }
    partition_log.append(root, 'kind', 'queue', 'name', action, 'data', json.encode(data), 'actor', actor, 'reason', reason)
    if group == '' then change_queue(root, queue, key, action, now, call) end
    if action ~= 'resume' then redis.call('SADD', keys.queues(root), queue) end -- a queue with rules is listed
    if action ~= 'pause' and waiting > 0 then jobs.ring_bell(root, queue, waiting) end
    pulse.ring(root)
    return { replies.OK }
end
