-- needs: arguments, commit, jobs, keys, limits, replies, stats
-- sb_take: gives up to `count` ready jobs of a queue to a worker: pop, lease, token and attempt in one call.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue · 2 worker · 3 count (1..1000) · 4 lease in ms ('' = what each job asks for) · 5 now (ms, or '')
--          · 6 nonce, mixed into the tokens
-- Returns: {OK, hint, job, {job field, value, ..., field, newer value, ...}, {instance field, value, ...}, job, ...} where
--          the hint says why there are fewer than asked for: '' there are no more, 'paused', 'busy' (as many are leased as
--          may be) or the ms until the rate allows one more · {BADARG, why}
-- Notifies: <root>:pulse when anything was taken
-- Cost:    O(count * log(queue))
local MAX_COUNT, WAKE = 1000, 100
local NONE = {} -- never written
local call, pcall_redis = redis.call, redis.pcall

-- Asked before a job is popped: what fails after that would lose it.
local function misfit(queue, worker, count, lease, now)
    if not queue or #queue > 64 or not string.find(queue, '^[%a_][%w_.-]*$') then
        return 'a queue has a name of letters, digits, _ . and -'
    end
    if not worker then return 'a worker has a name' end
    if not arguments.count(count, 1, MAX_COUNT) then return 'count is 1 to ' .. MAX_COUNT end
    if lease ~= '' and not arguments.count(lease, 1, arguments.MAX_MS) then
        return 'a lease has 1 to ' .. arguments.MAX_MS .. ' ms'
    end
    return arguments.misfit('', '', '', '', now)
end

-- Adds what changes to the flat list of fields; answers when the lease ends. A first attempt began when it was taken.
local function lease(root, job, flat, row, hand)
    local attempt, now = tonumber(row.attempt or 0) + 1, hand.now
    local token, till = attempt .. '-' .. hand.nonce, now + (hand.asked or tonumber(row.lease or jobs.DEFAULT.lease))
    local timeout, count = tonumber(row.timeout), #flat
    local changed = count + 1
    flat[changed], flat[count + 2] = 'place', 'leased'
    flat[count + 3], flat[count + 4] = 'attempt', attempt
    flat[count + 5], flat[count + 6] = 'token', token
    flat[count + 7], flat[count + 8] = 'worker', hand.worker
    flat[count + 9], flat[count + 10] = 'taken', now
    count = count + 10
    if row.taken and not row.started then
        flat[count + 1], flat[count + 2] = 'started', row.taken
        count = count + 2
    end
    if timeout then
        till = math.min(till, now + timeout)
        flat[count + 1], flat[count + 2] = 'deadline', now + timeout
        count = count + 2
    end
    call('HSET', keys.job(root, job), unpack(flat, changed, count))
    flat[count + 1], flat[count + 2] = 'until', till
    return till
end

local function hand_out(root, queue, popped, hand)
    local reply, leased, waits, taken = { replies.OK, '' }, {}, {}, 0
    for i = 1, #popped, 2 do
        local job = popped[i]
        local flat = pcall_redis('HGETALL', keys.job(root, job))
        local row = jobs.row(flat)
        if row then
            taken = taken + 1
            leased[2 * taken - 1], leased[2 * taken] = lease(root, job, flat, row, hand), job
            local bucket = stats.bucket(hand.now - (row.due or row.created))
            waits[bucket] = (waits[bucket] or 0) + 1
            local at, instance = 3 * taken, row.instance and pcall_redis('HGETALL', keys.instance(root, row.instance))
            reply[at], reply[at + 1], reply[at + 2] = job, flat, instance and not instance.err and instance or NONE
        end
    end
    if taken > 0 then
        redis.call('ZADD', keys.leased(root, queue), unpack(leased))
        stats.waited(root, queue, waits)
    end
    return reply, taken
end

return function(KEYS, ARGV)
    local root, queue, worker, count = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
    local bad = misfit(queue, worker, ARGV[3], ARGV[4] or '', ARGV[5] or '')
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local hand = { worker = worker, asked = tonumber(ARGV[4] or ''), nonce = ARGV[6] or '' }
    local now, clock = arguments.now(ARGV[5])
    hand.now = now
    if hand.nonce == '' then
        local time = redis.call('TIME')
        hand.nonce = time[1] .. time[2]
    end
    jobs.probe(root, queue, 'leased')
    jobs.wake(root, queue, now, WAKE)
    local rules, why = limits.read(root, queue), nil
    if rules then count, why = limits.allowance(rules, root, queue, count, now) end
    if count == 0 then
        if why == 'busy' then jobs.crave(root, queue) end
        return { replies.OK, why }
    end
    local popped = redis.call('ZPOPMIN', keys.ready(root, queue), count)
    if not popped[1] then return { replies.OK, '' } end
    local reply, taken = hand_out(root, queue, popped, hand)
    if rules and taken > 0 then limits.spend(rules, root, queue, taken, now) end
    if why and #popped == 2 * count then
        reply[2] = why
        if why == 'busy' then jobs.crave(root, queue) end
    end
    if taken > 0 then commit.pulse(root, clock) end
    return reply
end
