-- needs: group_limits, jobs, keys, packed_jobs, queue_counters, queue_limits, ready_order
-- Held jobs of a queue: those of groups that have reached their limits. A take makes ready what the limits allow by then.
local held_jobs = {}

local call = redis.call
local MOST, GROUPS = 50, 100 -- jobs of a group, and groups, that one take makes ready
local STEP = 10 -- groups that are marked where many are due
local FIELDS = { 'group', 'weight', 'priority', 'attempt', 'taken', 'due', 'created' }
local LONGEST = 60000 -- ms after which a group is looked at again: one that is due later has waited since the clock was set back

-- Makes ready the first held jobs of a group, as far as its limits allow; notes when to look at it again.
local function release(root, queue, group, most, now)
    local room, why, ready, left = group_limits.count_room(root, queue, group, most, now)
    local held = group_limits.list_held(root, queue, group, room + 1)
    for i = 1, math.min(room, #held) do
        local _, _, job = group_limits.parse_member(held[i])
        local row = redis.pcall('HMGET', keys.job(root, job), 'priority', 'weight')
        local spec = { priority = not row.err and row[1] or nil, weight = not row.err and row[2] or nil, group = group }
        ready = ready + 1
        call('ZADD', keys.ready(root, queue), ready_order.compute_released(root, queue, job, spec, ready), job)
        group_limits.make_ready(root, queue, held[i])
    end
    local releases = keys.releases(root, queue)
    call('ZREM', releases, group)
    if not held[room + 1] then return end
    if left and left > 0 then
        call('ZADD', releases, -left, group)
    elseif type(why) == 'number' then
        call('ZADD', releases, now + math.min(why, LONGEST), group)
    end
    if not why then group_limits.mark(root, queue, group) end
end

-- Makes ready the held jobs whose groups have room, of the groups that are due: some more than the take asks for.
function held_jobs.release_due(root, queue, groups, count, now)
    local at_once = math.min(GROUPS, count + 15)
    local key = keys.releases(root, queue)
    local due = call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, at_once)
    if not due[1] then due = call('ZRANGEBYSCORE', key, '(' .. now + LONGEST, '+inf', 'LIMIT', 0, at_once) end
    local most = math.min(MOST, math.ceil(math.max(2 * count / #due, count / 5 + 2)))
    for i, group in ipairs(due) do
        if string.byte(group) ~= 0 then
            release(root, queue, group, most, now)
        elseif string.byte(due[i + 1] or '-') ~= 0 then
            group_limits.mark_further(root, queue, group, #due < at_once and at_once or STEP)
        end
    end
    group_limits.tidy(root, queue, groups, now)
end

-- Holds a job that was popped although its group has reached its limits.
function held_jobs.put_back(root, queue, job, row)
    local has_run = (tonumber(row.attempt) or 0) > 0
    call('ZADD', keys.ready(root, queue), ready_order.compute_score(root, queue, job, row, has_run), job)
    ready_order.give_back(root, queue, row)
end

-- Holds the ready jobs of a group again, and lets it rest.
local function let_rest(root, queue, group, ms, now)
    local from, to = group_limits.list_ranges(group, 'r')
    for _, member in ipairs(call('ZRANGEBYLEX', keys.members(root, queue), from, to, 'LIMIT', 0, MOST)) do
        local _, _, job = group_limits.parse_member(member)
        local row = packed_jobs.read(keys.job(root, job), 'priority', 'weight', 'attempt')
        call('ZREM', keys.members(root, queue), member)
        if row and row.queue == queue then
            row.group = group
            held_jobs.put_back(root, queue, job, row)
        end
    end
    return group_limits.let_rest(root, queue, group, ms, now)
end

-- Tells whether a take would find a job.
function held_jobs.has_takable(root, queue, now)
    local first = call('ZRANGE', keys.ready(root, queue), 0, 0, 'WITHSCORES')[2]
    if not first or tonumber(first) < group_limits.HELD then return first ~= nil end
    return held_jobs.find_next(root, queue, now) == 1
end

-- Puts a leased job back where it was that the home of its group did not admit, or that of its queue (`group` is ''), and does
-- not count the attempt. The group or queue rests for some ms or, without `ms`, as usual. Answers for how long; nil when the
-- token no longer holds the job.
function held_jobs.take_back(root, queue, job, token, group, ms, now)
    local row = jobs.read_held(root, job, token, unpack(FIELDS))
    if not row or row.queue ~= queue or group ~= '' and not row.group then return nil end
    local attempt, key = tonumber(row.attempt) - 1, keys.job(root, job)
    if group == '' and row.group then group_limits.undo(root, queue, job, row.group, now) end
    local score = ready_order.compute_score(root, queue, job, row, attempt > 0 or group == '')
    jobs.move(root, job, queue, 'leased', 'ready', score, 'attempt', attempt, 'token', '', 'worker', '')
    if attempt == 0 then call('HDEL', key, 'taken', 'started') end
    local waited = (tonumber(row.taken) or now) - (tonumber(row.due or row.created) or now)
    queue_counters.count_wait_times(root, queue, { [queue_counters.find_bucket(waited)] = -1 })
    ms = ms and math.min(ms, LONGEST)
    if group == '' then return queue_limits.let_rest(root, queue, ms, now) end
    if score < group_limits.HELD then jobs.ring_bell(root, queue) end
    return let_rest(root, queue, row.group, ms, now)
end

-- Answers the ms until a group may have room, nil when none will by time alone.
function held_jobs.find_next(root, queue, now)
    local first = call('ZRANGE', keys.releases(root, queue), 0, 0, 'WITHSCORES')[2]
    return first and math.max(1, math.ceil(tonumber(first) - now))
end

return held_jobs
