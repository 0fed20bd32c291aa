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
local NO_KIND = { text = ' ' } -- no text of a ready job begins so
local call = redis.call
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

-- Finds the kind of a plain job among those of this call, with its src and invoke as a brief reply has them. A damaged job is
-- of no kind.
local function find_kind(plain, kinds)
    local kind = packed_jobs.find_kind(plain)
    if not kind then return NO_KIND end
    if kinds[kind.text] then return kinds[kind.text] end
    kinds[kind.text], kind.work = kind, kind.row.src .. ' ' .. (kind.row.invoke or '') .. ' '
    return kind
end

-- Lists the fields and values of a plain job as if each were stored by itself. `rest`: its instance or its input.
local function list_plain(kind, created, rest)
    local row = kind.row
    local flat = { 'place', 'ready', 'src', row.src, 'queue', row.queue, 'created', created }
    if row.invoke then
        flat[9], flat[10], flat[11], flat[12] = 'instance', rest, 'invoke', row.invoke
    elseif rest ~= '' then
        flat[9], flat[10] = 'input', rest
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

-- Jobs of one call mostly became ready and end their leases together: what is worked out from a time is kept for the next.
-- Answers the reply, the numbers of jobs that were leased and looked at, and whether one has a group.
local function lease_all(root, queue, found, taking)
    local now, plain_end, is_over = taking.now, taking.now + (taking.lease or LEASE), taking.is_over
    local plain_score, prefix, names = json.number(plain_end), keys.job(root, ''), {}
    local reply, leased, waits, at, held, first = { replies.OK, '', now }, {}, {}, 3, 0, math.huge
    local is_brief = taking.brief
    if is_brief then reply[4], reply[5], reply[6], at = '', taking.plain, plain_end, 6 end
    local last_ready, bucket, has_group
    for i, job in ipairs(found) do names[i] = prefix .. job end
    local texts, written, lease, kinds, kind = packed_jobs.read_texts(names), {}, taking.stored, {}, NO_KIND
    local seen = #found
    for i, job in ipairs(found) do
        if is_over and i > 1 and i % LOOK == 1 and is_over() then
            seen = i - 1
            break
        end
        local key, text = names[i], texts[i]
        local row, flat, ready, instance
        if text then
            ready, instance = parse_made(text, kind.text)
            if not ready then
                text = packed_jobs.split(text)
                kind = find_kind(text, kinds)
                ready, instance = parse_made(text, kind.text)
            end
            if ready and not (is_brief and kind.row.invoke) then flat = list_plain(kind, ready, instance) end
        else
            flat = redis.pcall('HGETALL', key)
            local is_packed
            row, is_packed = packed_jobs.parse(flat)
            if is_packed then flat = packed_jobs.list_fields(row) end
        end
        if row and row.group and taking.groups and not admit(root, queue, job, row, taking) then row = nil end
        if ready or row then
            local token, lease_end, score = taking.plain, plain_end, plain_score
            if ready then
                local count = #written
                written[count + 1], written[count + 2] = key, lease .. text
                if not kind.row.invoke then instance = nil end
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
            elseif flat then
                reply[at + 1], at = { job, flat, token, lease_end, def, data }, at + 1
            else
                reply[at + 1] = job .. ' ' .. ready .. ' ' .. kind.work .. def .. ' ' .. instance
                reply[at + 2], at = data, at + 2
            end
        end
    end
    if held > 0 then
        if written[1] then packed_jobs.write_texts(written) end
        call('ZADD', keys.leased(root, queue), unpack(leased))
        due_times.note(root, first, now)
        queue_counters.count_wait_times(root, queue, waits)
    end
    return reply, held / 2, seen, has_group
end

-- Leases the first jobs of a queue. One of a lower priority is among the first few, which are leased however little time there
-- is. Answers the reply, how many were leased, whether time was over first, and whether there were fewer than `count`.
local function lease_first(root, queue, count, taking)
    local ready = keys.ready(root, queue)
    local aged, last = ready_order.pop_aged(ready, count)
    local listed = count > (aged and 1 or 0) and ready_order.list_first(ready, aged and count - 1 or count, taking.groups) or {}
    local found = listed
    if aged then
        found = { unpack(listed) }
        table.insert(found, math.min(#listed, LOOK - 2) + 1, aged)
    end
    if not found[1] then return nil, 0, false, true end
    local reply, leased, seen, has_group = lease_all(root, queue, found, taking)
    local removed, is_cut, are_all = seen - (aged and 1 or 0), seen < #found, #found < count
    if removed > 0 then last = ready_order.remove_first(ready, listed, removed) end
    ready_order.note_taken(root, queue, tonumber(last), are_all and not is_cut, has_group)
    return reply, leased, is_cut, are_all
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
    taking.stored = packed_jobs.make_lease(taking.plain, taking.stamp, worker)
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
    local reply, taken, is_cut, are_all = lease_first(root, queue, count, taking)
    if are_all or count < asked then queue_bells.note_empty(root, queue, hears) end
    if not reply then
        ready_order.note_emptied(root, queue)
        if rules and rules.home then note_queue_home(root, queue, rules, 0, now) end
        return { replies.OK, find_hint(root, queue, nil, taking) or '', now }
    end
    local home = rules and rules.home and note_queue_home(root, queue, rules, taken, now)
    if rules and not rules.home and taken > 0 then queue_limits.count_taken(rules, root, queue, taken, now) end
    if is_cut then
        reply[2] = 'more'
    elseif taken < asked then
        if are_all then why = nil end
        reply[2] = find_hint(root, queue, why, taking) or ''
        if why == 'busy' then jobs.request_bell(root, queue) end
    end
    if taken > 0 then pulse.ring(root, clock) end
    if home then reply[taking.brief and 4 or #reply + 1] = home end
    return reply
end
