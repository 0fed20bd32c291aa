-- needs: arguments, due_times, group_limits, held_jobs, instances, jobs, json, keys, packed_jobs, pulse
-- needs: queue_bells, queue_counters, queue_limits, ready_order, replies, time_limit
-- sb_take: leases up to `count` ready jobs of a queue to a worker: pop, lease, token and attempt in one call.
-- KEYS:    1 root of the partition
-- ARGV:    1 queue · 2 worker · 3 count (1..1000) · 4 lease in ms ('' = that of each job) · 5 now (ms, or '') · 6 nonce
--          that no other call uses, without spaces, mixed into the tokens · 7 'hears' from a caller that hears the channel
--          <root>:bells and does not wait on the list <root>:q:<queue>:bell · 8 'brief' for a short reply, from a caller that
--          has jobs admitted: without it, each partition has a share of the limits
-- Returns: {OK, hint, now, job, {field, value, ... of the job as they were before}, token (it begins with the attempt), ms
--          the lease ends, definition of its instance, that instance's data (JSON), job, ...}; the last two are '' for a job
--          without an instance · {OK, hint, now, '' or the word of the queue, token, ms the lease ends, job, ...} with 'brief':
--          a plain job of an instance is a text and the data, any other a list of the six. The text: job, when it was created,
--          its src, invoke, definition and instance, between spaces.
--          A field `home`, '3' or '3 more', says that the partition of this number has to admit the job before it runs
--          (sb_admit), and whether jobs of its group are held here; one more word at the end says it of the queue. The hint
--          says why there are fewer than `count`: '' there are no more, 'more' some ms were over (with 'hears'), 'paused',
--          'busy' (as many are leased as may be) or the ms until there may be room · {BADARG, why}
-- Notifies: <root>:pulse when anything was taken
-- Cost:    O(count * log(queue))
local MAX_COUNT, WAKE = 1000, 100
local LOOK, SLICES = 16, 2 -- jobs between two looks at the clock; time of a call
local LEASE = jobs.DEFAULT.lease
local NO_KIND = { text = ' ' } -- no plain job begins so
local call, pcall_redis = redis.call, redis.pcall
local encode_data, parse_made = instances.encode_data, packed_jobs.parse_made

-- Checked before a job is popped: an error after that would lose it.
local function check_arguments(queue, worker, count, lease, nonce)
    arguments.refuse(arguments.check_queue(queue))
    if not worker then arguments.refuse('a worker has a name') end
    if not arguments.parse_count(count, 1, MAX_COUNT) then arguments.refuse('count is 1 to ' .. MAX_COUNT) end
    if lease ~= '' and not arguments.parse_count(lease, 1, arguments.MAX_MS) then
        arguments.refuse('a lease has 1 to ' .. arguments.MAX_MS .. ' ms')
    end
    if string.find(nonce, '%s') then arguments.refuse('a nonce has no spaces') end
end

-- Finds the kind of a plain job among those of this call: its text, src and invoke as a brief reply has them, and the leases
-- of its jobs as `packed_jobs.remember` takes them. A damaged job is of no kind.
local function find_kind(root, plain, taking, kinds)
    local text = packed_jobs.find_kind(plain)
    if not text then return NO_KIND end
    if kinds[text] then return kinds[text] end
    local job = packed_jobs.unpack({ plain = plain })
    local row = { place = 'leased', token = taking.plain, attempt = '1', queue = job.queue, taken = taking.stamp,
        worker = taking.worker, invoke = job.invoke, key = nil, instance = nil, created = nil, run = nil }
    kinds[text] = { text = text, src = job.src, work = job.src .. ' ' .. (job.invoke or '') .. ' ', root = root,
        packed = taking.packed, row = row, made = {}, instances = {} }
    return kinds[text]
end

-- Lists the fields and values of a plain job as if each were stored by itself.
local function list_plain(key, kind, created, instance)
    local flat = { 'place', 'ready', 'src', kind.src, 'queue', kind.row.queue, 'created', created }
    if instance ~= '' then
        flat[9], flat[10], flat[11], flat[12] = 'instance', instance, 'invoke', kind.row.invoke
    else
        local input = call('HGET', key, 'input')
        if input then flat[9], flat[10] = 'input', input end
    end
    return flat
end

-- Leases any other job. The first attempt starts at `taken`; later ones store that in `started`.
local function lease_job(key, row, taking)
    local now, timeout = taking.now, row.timeout and tonumber(row.timeout)
    local attempt = row.attempt and json.number(row.attempt + 1) or '1'
    local token = attempt .. '-' .. taking.nonce .. '-'
    local lease_end = now + (taking.lease or row.lease or LEASE)
    local words = { 'place', 'leased', 'attempt', attempt, 'token', token, 'worker', taking.worker, 'taken', taking.stamp }
    if row.taken and not row.started then words[11], words[12] = 'started', row.taken end
    if timeout then
        lease_end = math.min(lease_end, now + timeout)
        words[#words + 1], words[#words + 2] = 'deadline', json.number(now + timeout)
    end
    call('HSET', key, unpack(words))
    if row.extended then call('HDEL', key, 'extended') end
    return token, lease_end
end

-- Tells whether the limits of its group let a job be leased; it is held otherwise. Notes the home of the group in the row, if
-- that has to admit the job.
local function admit(root, queue, job, row, taking)
    local may, home = group_limits.admit(root, queue, job, row.group, taking.groups, taking.now, taking.brief)
    row.home = home
    if may then return true end
    held_jobs.put_back(root, queue, job, row)
    if home and not taking.brief then
        group_limits.let_rest(root, queue, row.group, nil, taking.now)
    else
        taking.put_back = true
    end
    return false
end

-- Adds the number of the home to the fields of a job, and whether jobs of its group are held.
local function note_home(root, queue, row, flat)
    local count, has_more = #flat, group_limits.list_held(root, queue, row.group, 1)[1]
    flat[count + 1], flat[count + 2] = 'home', json.number(row.home) .. (has_more and ' more' or '')
end

-- Puts the popped jobs from this place on back where they were.
local function put_back(root, queue, popped, first)
    local flat = {}
    for i = first, #popped, 2 do flat[i - first + 1], flat[i - first + 2] = popped[i + 1], popped[i] end
    call('ZADD', keys.ready(root, queue), unpack(flat))
    popped.last, popped.is_cut = tonumber(popped[first - 1]), true
end

-- Jobs of one call mostly became ready and end their leases together: what is worked out from a time is kept for the next.
local function lease_popped(root, queue, popped, taking)
    local now, plain_end, is_over, packed = taking.now, taking.now + (taking.lease or LEASE), taking.is_over, taking.packed
    local plain_score, prefix = json.number(plain_end), keys.job(root, '')
    local reply, leased, waits, at, held, first = { replies.OK, '', now }, {}, {}, 3, 0, math.huge
    local is_brief = taking.brief
    if is_brief then reply[4], reply[5], reply[6], at = '', taking.plain, plain_end, 6 end
    local last_ready, bucket, has_group, lease
    local kinds, kind = {}, NO_KIND
    for i = 1, #popped, 2 do
        if is_over and i > 1 and i % (2 * LOOK) == 1 and is_over() then
            put_back(root, queue, popped, i)
            break
        end
        local job = popped[i]
        local key = prefix .. job
        local plain, row, flat = pcall_redis('HGET', key, 'plain'), nil, nil
        local ready, instance
        if type(plain) == 'string' then
            ready, instance = parse_made(plain, kind.text)
            if not ready then
                kind = find_kind(root, plain, taking, kinds)
                ready, instance = parse_made(plain, kind.text)
            end
            if ready then lease = lease or kind end
        end
        if ready and (instance == '' or not is_brief) then
            flat = list_plain(key, kind, ready, instance)
        elseif not ready then
            flat = pcall_redis('HGETALL', key)
            row = packed_jobs.parse(flat)
        end
        if row and row.group and taking.groups and not admit(root, queue, job, row, taking) then row = nil end
        if ready or row then
            local token, lease_end, score = taking.plain, plain_end, plain_score
            if ready then
                call('HSET', key, 'place', 'leased', 'token', packed)
                if instance == '' then instance = nil end
                if kind == lease then lease.made[job], lease.instances[job] = ready, instance end
            else
                token, lease_end = lease_job(key, row, taking)
                ready, instance, score = row.due or row.created, row.instance, lease_end
            end
            if ready ~= last_ready then
                last_ready, bucket = ready, queue_counters.find_bucket(now - ready)
                waits[bucket] = waits[bucket] or 0
            end
            waits[bucket] = waits[bucket] + 1
            leased[held + 1], leased[held + 2] = score, job
            held = held + 2
            if lease_end < first then first = lease_end end
            local def, data = '', ''
            if instance then def, data = encode_data(root, instance) end
            if row then
                has_group = has_group or row.group
                if row.home then note_home(root, queue, row, flat) end
            end
            if not is_brief then
                reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = job, flat, token, lease_end
                reply[at + 5], reply[at + 6] = def, data
                at = at + 6
            elseif row or not instance then
                reply[at + 1], at = { job, flat, token, lease_end, def, data }, at + 1
            else
                reply[at + 1] = job .. ' ' .. ready .. ' ' .. kind.work .. def .. ' ' .. instance
                reply[at + 2], at = data, at + 2
            end
        end
    end
    if held > 0 then
        call('ZADD', keys.leased(root, queue), unpack(leased))
        if lease then packed_jobs.remember(lease, held / 2) end
        due_times.note(root, first, now)
        queue_counters.count_wait_times(root, queue, waits)
    end
    return reply, held / 2, has_group
end

-- Removes and answers up to `count` ready jobs and their scores; `last`: the score of the last in order. One of a lower
-- priority is among the first, which are leased however little time there is.
local function pop(ready, count, has_held)
    local aged, score = ready_order.pop_aged(ready, count)
    local popped = (not aged or count > 1) and ready_order.pop(ready, aged and count - 1 or count, has_held) or {}
    popped.last = tonumber(popped[#popped] or score)
    if aged then
        local at = math.min(#popped, 2 * (LOOK - 2)) + 1
        table.insert(popped, at, score)
        table.insert(popped, at, aged)
    end
    return popped
end

-- Ends the rest of a queue whose home admits its jobs; answers the home, as of a group, for `taken` jobs.
local function note_queue_home(root, queue, rules, taken, now)
    local has_more = held_jobs.has_takable(root, queue, now)
    queue_limits.end_rest(rules, root, queue, taken, has_more, now)
    return taken > 0 and json.number(rules.home) .. (has_more and ' more' or '') or nil
end

-- Answers why fewer were taken than asked for: what the limits of the queue say, or the ms until a group has room.
local function find_hint(root, queue, why, taking)
    if not taking.groups or type(why) == 'string' then return why end
    local wait = taking.put_back and 1 or held_jobs.find_next(root, queue, taking.now)
    return wait and math.min(wait, why or wait) or why
end

return function(KEYS, ARGV)
    local root, queue, worker, count = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
    check_arguments(queue, worker, ARGV[3], ARGV[4] or '', ARGV[6] or '')
    local taking = { worker = worker, lease = tonumber(ARGV[4] or ''), nonce = ARGV[6] or '',
        brief = ARGV[8] == 'brief', is_over = ARGV[7] == 'hears' and time_limit.start(SLICES) }
    local now, clock = arguments.need_now(ARGV[5])
    taking.now, taking.stamp = now, json.number(now)
    if taking.nonce == '' then
        local time = redis.call('TIME')
        taking.nonce = time[1] .. time[2]
    end
    taking.plain = '1-' .. taking.nonce .. packed_jobs.PLAIN
    taking.packed = packed_jobs.pack_lease(taking.plain, taking.stamp, worker)
    jobs.check_place(root, queue, 'leased')
    jobs.wake_delayed(root, queue, now, WAKE)
    local asked, hears = count, ARGV[7] == 'hears'
    local rules, groups = queue_limits.read(root, queue)
    local why
    if rules and rules.home and not taking.brief then queue_limits.take_share(root, rules) end
    if rules and rules.home then
        count, why = queue_limits.count_room(rules, count, now)
    elseif rules then
        local leased = rules.concurrency and call('ZCARD', keys.leased(root, queue)) or 0
        count, why = queue_limits.compute_allowance(rules, leased, count, now)
    end
    if count == 0 then
        queue_bells.note_empty(root, queue, hears)
        if why == 'busy' then jobs.request_bell(root, queue) end
        return { replies.OK, why, now }
    end
    taking.groups = groups
    if groups then held_jobs.release_due(root, queue, groups, count, now) end
    local popped = pop(keys.ready(root, queue), count, groups)
    if #popped < 2 * asked then queue_bells.note_empty(root, queue, hears) end
    if not popped[1] then
        ready_order.note_emptied(root, queue)
        if rules and rules.home then note_queue_home(root, queue, rules, 0, now) end
        return { replies.OK, find_hint(root, queue, nil, taking) or '', now }
    end
    local reply, taken, has_group = lease_popped(root, queue, popped, taking)
    ready_order.note_taken(root, queue, popped.last, not popped.is_cut and #popped < 2 * count, has_group)
    local home = rules and rules.home and note_queue_home(root, queue, rules, taken, now)
    if rules and not rules.home and taken > 0 then queue_limits.count_taken(rules, root, queue, taken, now) end
    if popped.is_cut then
        reply[2] = 'more'
    elseif taken < asked then
        if #popped < 2 * count then why = nil end
        reply[2] = find_hint(root, queue, why, taking) or ''
        if why == 'busy' then jobs.request_bell(root, queue) end
    end
    if taken > 0 then pulse.ring(root, clock) end
    if home then reply[taking.brief and 4 or #reply + 1] = home end
    return reply
end
