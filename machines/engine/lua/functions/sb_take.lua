-- needs: arguments, commit, jobs, keys, replies
-- sb_take: gives up to `count` ready jobs of a queue to a worker: pop, lease, token and attempt in one call.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue · 2 worker · 3 count (1..1000) · 4 lease in ms ('' = what each job asks for) · 5 now (ms, or '')
--          · 6 nonce, mixed into the tokens
-- Returns: {OK, job, {job field, value, ...}, {instance field, value, ...}, job, ...} · {BADARG, why}
-- Notifies: <root>:pulse when anything was taken
-- Cost:    O(count * log(queue))
local MAX_COUNT, WAKE = 1000, 100

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

local function lease_of(row, asked)
    return asked or tonumber(row.lease)
end

local function hand_out(root, job, row, worker, now, asked, nonce)
    local attempt = tonumber(row.attempt) + 1
    local till = now + lease_of(row, asked)
    row.attempt, row.token = attempt, attempt .. '-' .. nonce
    row.worker, row['until'], row.place = worker, till, 'leased'
    redis.call('ZADD', keys.leased(root, row.queue), till, job)
    redis.call('HSET', keys.job(root, job), 'place', 'leased', 'attempt', attempt, 'token', row.token,
        'worker', worker, 'until', till, 'taken', now)
end

local function flatten(row)
    local flat = {}
    for name, value in pairs(row) do
        flat[#flat + 1] = name
        flat[#flat + 1] = value
    end
    return flat
end

return function(KEYS, ARGV)
    local root, queue, worker, count = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
    local bad = misfit(queue, worker, ARGV[3], ARGV[4] or '', ARGV[5] or '')
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local asked, nonce = tonumber(ARGV[4] or ''), ARGV[6] or ''
    local now = arguments.now(ARGV[5])
    if nonce == '' then
        local time = redis.call('TIME')
        nonce = time[1] .. time[2]
    end
    jobs.probe(root, queue, 'leased')
    jobs.wake(root, queue, now, WAKE)
    local reply, popped = { replies.OK }, redis.call('ZPOPMIN', keys.ready(root, queue), count)
    for i = 1, #popped, 2 do
        local row = jobs.read(root, popped[i])
        if row then
            hand_out(root, popped[i], row, worker, now, asked, nonce)
            reply[#reply + 1] = popped[i]
            reply[#reply + 1] = flatten(row)
            local instance = redis.pcall('HGETALL', keys.instance(root, row.instance))
            reply[#reply + 1] = instance.err and {} or instance
        end
    end
    if #reply > 1 then commit.pulse(root) end
    return reply
end
