-- needs: due_times, failures, group_admissions, group_limits, json, keys, packed_jobs, queue_bells, queue_counters
-- needs: ready_order, strings, traces, version_counters
-- Jobs and their places. A job is in exactly one of ready, leased, delayed, dead, handled of its queue, and its own hash
-- names the place; every move goes through this module.
local jobs = {}

local MAX_DEAD = 10000
local MAX_LOG, MAX_LOGGED = 10, 200 -- attempts; bytes of the error of each
local WITHDRAWN_MS = 600000 -- how long the withdrawal of a leased job is remembered for its worker
local MAX_BELL_REQUESTS = 10000

local places = { ready = keys.ready, leased = keys.leased, delayed = keys.delayed, dead = keys.dead,
    handled = keys.handled }
jobs.places = places

-- Queues that have ready jobs and reached their limit of leased ones. Lost when the server restarts: idle workers poll again
-- after a while.
local bell_requests, bell_request_count = {}, 0

jobs.ring_bell = queue_bells.ring

-- Requests that the queue's bell rings when one of its leased jobs ends.
function jobs.request_bell(root, queue)
    local key = keys.leased(root, queue)
    if bell_requests[key] then return end
    if bell_request_count > MAX_BELL_REQUESTS then bell_requests, bell_request_count = {}, 0 end
    bell_requests[key], bell_request_count = true, bell_request_count + 1
end

local function ring_requested_bell(root, queue)
    if bell_request_count == 0 then return end
    local key = keys.leased(root, queue)
    if not bell_requests[key] then return end
    bell_requests[key], bell_request_count = nil, bell_request_count - 1
    jobs.ring_bell(root, queue)
end

jobs.ring_requested_bell = ring_requested_bell

-- Lets a job of a group leave the places that limits of its group count. `place`: where it was, ready or leased.
function jobs.leave_group(root, job, row, place)
    if (row.group or '') == '' then return end
    local score = place == 'ready' and redis.pcall('ZSCORE', keys.ready(root, row.queue), job)
    local is_free = group_limits.leave(root, row.queue, job, row.group, type(score) == 'string' and tonumber(score) or nil)
    if is_free then jobs.ring_bell(root, row.queue) end
end

function jobs.make_id(root, number)
    return string.match(root, ':(%d+)}$') .. '-' .. number
end

-- Tells whether a job of this place has no attempts left.
function jobs.has_ended(place)
    return place == 'dead' or place == 'handled'
end

-- Finds the open job that holds a unique key; nil when the key is free.
function jobs.find_holder(root, queue, unique)
    local job = redis.call('GET', keys.unique(root, queue, unique))
    if not job then return nil end
    local key = keys.job(root, job)
    local place = redis.pcall('HGET', key, 'place')
    if type(place) == 'table' then
        if packed_jobs.read(key) then return nil end -- a plain job, which has no unique key
        error(place, 0)
    end
    return place and not jobs.has_ended(place) and job or nil
end

-- Frees a unique key if this job holds it.
local function free_unique_key(root, queue, unique, job)
    local key = keys.unique(root, queue, unique)
    if redis.pcall('GET', key) == job then redis.pcall('DEL', key) end
end

-- Gives back the number of the newest job, which was not added or was removed in the same call.
function jobs.release_number(root)
    if redis.call('HINCRBY', keys.meta(root), 'jobs', -1) == 0 then redis.call('HDEL', keys.meta(root), 'jobs') end
end

-- The defaults of a job; its hash leaves them out.
jobs.DEFAULT = { attempts = 3, backoff = 1000, lease = 30000, priority = ready_order.PRIORITY, timeout = 0, unique = '',
    stop = '', input = '', jitter = true, group = '', weight = 1, batch = '' }

-- Lists the fields of a job that differ from the defaults, names and values in turn.
function jobs.list_non_defaults(spec)
    local flat, count = {}, 0
    for name, default in pairs(jobs.DEFAULT) do
        local value = spec[name]
        if value ~= nil and value ~= default then
            flat[count + 1], flat[count + 2] = name, value or '0'
            count = count + 2
        end
    end
    return flat
end

-- Lists the fields of the job's hash; few, because every step that requests a job writes them.
local function list_fields(spec, non_defaults, place, now)
    local flat = { 'place', place, 'src', spec.src, 'queue', spec.queue, 'created', now }
    local count = 8
    if spec.instance then
        flat[9], flat[10], count = 'instance', spec.instance, 10
        if spec.invoke ~= '' then flat[11], flat[12], count = 'invoke', spec.invoke, 12 end
    end
    for i = 1, #non_defaults do flat[count + i] = non_defaults[i] end
    count = count + #non_defaults
    if place == 'delayed' then flat[count + 1], flat[count + 2], count = 'due', now + spec.delay, count + 2 end
    if traces.current then flat[count + 1], flat[count + 2] = 'traceparent', traces.current end
    return flat
end

local function add_ready(root, job, spec)
    local score = ready_order.compute_score(root, spec.queue, job, spec)
    redis.call('ZADD', keys.ready(root, spec.queue), score, job)
end

local function store_new(root, job, number, spec, now)
    local later = (spec.delay or 0) > 0
    local non_defaults = spec.non_defaults or jobs.list_non_defaults(spec)
    local plain = not later and not traces.current and packed_jobs.pack(spec, non_defaults, now, number)
    if plain then
        if not redis.call('SET', keys.job(root, job), plain, 'NX') then
            error({ err = 'WRONGTYPE the key of the new job ' .. job .. ' is in use' })
        end
    else
        redis.call('HSET', keys.job(root, job), unpack(list_fields(spec, non_defaults, later and 'delayed' or 'ready', now)))
    end
    local ok, caught
    if later then
        ok, caught = pcall(redis.call, 'ZADD', keys.delayed(root, spec.queue), now + spec.delay, job)
        due_times.note(root, now + spec.delay, now)
    else
        ok, caught = pcall(add_ready, root, job, spec)
    end
    if ok then return end
    redis.call('DEL', keys.job(root, job))
    error(caught, 0)
end

-- Has a job that no worker has begun, and no instance waits for, become another that waits for `spec.delay` from now. It keeps
-- its id and age. Answers what it was, for an undo; nil for any other job.
local function replace_waiting(root, job, spec, now)
    local key = keys.job(root, job)
    local before = redis.pcall('HGETALL', key)
    local row, due = packed_jobs.parse(before), now + spec.delay
    if not row or row.invoke or row.place == 'leased' or (tonumber(row.attempt) or 0) > 0 then return nil end
    local saved = row.place == 'ready' and ready_order.save(root, row.queue, job, row)
    redis.call('ZADD', keys.delayed(root, row.queue), due, job)
    redis.call('DEL', key)
    redis.call('HSET', key, unpack(list_fields(spec, spec.non_defaults or jobs.list_non_defaults(spec), 'delayed', now)))
    redis.call('HSET', key, 'created', row.created)
    if saved then
        jobs.leave_group(root, job, row, 'ready')
        redis.call('ZREM', keys.ready(root, row.queue), job)
        ready_order.give_back(root, row.queue, row)
    end
    due_times.note(root, due, now)
    return { fields = before, row = row, saved = saved }
end

-- Adds a job; the caller rings the bell. `spec`: instance, invoke (both empty for a job that no instance waits for), src,
-- queue, input, and where they differ from the defaults attempts, backoff, lease, priority, timeout, delay, unique, jitter
-- (false), stop, group, weight, batch; `non_defaults` is the result of jobs.list_non_defaults where the caller has it. `ending`:
-- ids, between spaces, of jobs that end in this step and no longer hold their unique keys. Answers the job; where an open job
-- holds the unique key, that job and true. `debounce`: that job is replaced if it waits, and gives the key up if it does not.
-- The third result is for an undo: the previous holder of the key, or what the replaced job was. All or nothing: when it
-- throws, no key has changed.
function jobs.enqueue(root, spec, now, ending)
    local holder
    if spec.unique then
        holder = jobs.find_holder(root, spec.queue, spec.unique)
        if holder and not (ending and string.find(ending, ' ' .. holder .. ' ', 1, true)) then
            local before = spec.debounce and replace_waiting(root, holder, spec, now)
            if before or not spec.debounce then return holder, true, before end
        end
    end
    local number = redis.call('HINCRBY', keys.meta(root), 'jobs', 1)
    local job = jobs.make_id(root, number)
    local ok, caught = pcall(store_new, root, job, number, spec, now)
    if not ok then
        jobs.release_number(root)
        error(caught, 0)
    end
    if spec.unique then redis.call('SET', keys.unique(root, spec.queue, spec.unique), job) end
    return job, false, holder
end

-- Removes a job that was added in this call, and gives the unique key back to its previous holder.
function jobs.undo_enqueue(root, job, spec, holder)
    jobs.remove(root, job)
    jobs.release_number(root)
    if holder then redis.call('SET', keys.unique(root, spec.queue, spec.unique), holder) end
end

-- Undoes the replacement of a waiting job in this call.
function jobs.undo_replace(root, job, before)
    local row, key = before.row, keys.job(root, job)
    redis.call('DEL', key)
    redis.call('HSET', key, unpack(before.fields))
    if not before.saved then return redis.call('ZADD', keys.delayed(root, row.queue), row.due, job) end
    redis.call('ZREM', keys.delayed(root, row.queue), job)
    ready_order.restore(root, row.queue, job, row, before.saved)
end

-- Moves a job to another place; `score` is its rank, or the ms at which its time there ends. It is added to the new place
-- before it leaves the old one: when the new one cannot be written, nothing has changed.
function jobs.move(root, job, queue, from, to, score, ...)
    redis.call('ZADD', places[to](root, queue), score, job)
    redis.pcall('ZREM', places[from](root, queue), job)
    local key = keys.job(root, job)
    if from == 'leased' or from == 'ready' then packed_jobs.spread(key) end
    redis.call('HSET', key, 'place', to, ...)
    if from == 'leased' then
        ring_requested_bell(root, queue)
        group_admissions.end_listed(root, job)
    end
    if from == 'dead' then jobs.clear_failure(root, job) end
end

-- Notes a dead job as a failure of its instance.
function jobs.note_failure(root, job)
    local row = redis.pcall('HMGET', keys.job(root, job), 'instance', 'kind', 'error')
    if row.err or not row[1] then return end
    failures.note(root, row[1], job, row[2] or '', row[3] or '')
end

-- Removes a job from the dead ones that its instance waits for.
local function forget_dead(root, instance, job)
    local key, others = keys.instance(root, instance), {}
    local text = redis.pcall('HGET', key, '_dead')
    if type(text) ~= 'string' then return end
    for other in string.gmatch(text, '%S+') do
        if other ~= job then others[#others + 1] = other end
    end
    if others[1] then redis.pcall('HSET', key, '_dead', table.concat(others, ' ')) else redis.pcall('HDEL', key, '_dead') end
end

-- Clears that failure when the job is no longer dead.
function jobs.clear_failure(root, job)
    local instance = redis.pcall('HGET', keys.job(root, job), 'instance')
    if type(instance) ~= 'string' then return end
    failures.clear(root, instance, job)
    forget_dead(root, instance, job)
end

-- Throws when a place cannot be written. Called before steps that could not be undone.
function jobs.check_place(root, queue, place)
    redis.call('ZCARD', places[place](root, queue))
end

-- Deletes a job. Never fails: a place that is no sorted set does not hold the job.
function jobs.delete(root, job, row)
    if row.place == 'ready' or row.place == 'leased' then jobs.leave_group(root, job, row, row.place) end
    redis.pcall('ZREM', places[row.place](root, row.queue), job)
    if row.place == 'dead' then jobs.clear_failure(root, job) end
    if row.place == 'ready' then ready_order.give_back(root, row.queue, row) end
    redis.call('DEL', keys.job(root, job))
    packed_jobs.note_change()
    if row.unique then free_unique_key(root, row.queue, row.unique, job) end
    if row.place ~= 'leased' then return end
    ring_requested_bell(root, row.queue)
    group_admissions.end_listed(root, job)
end

-- Notes for the worker of a leased job that it was withdrawn, and has its places in limits freed.
function jobs.note_withdrawn(root, job, row)
    redis.pcall('SET', keys.withdrawn(root, job), 1, 'NX', 'PX', WITHDRAWN_MS)
    pcall(group_admissions.abandon, root, job, row)
end

-- Deletes a job from any place. `why`: the counter to increment, 'withdrawn' or 'purged', which the worker of a leased job
-- reads.
function jobs.remove(root, job, why)
    local row = packed_jobs.read(keys.job(root, job), 'place', 'unique', 'priority', 'group', 'weight', 'token')
    if not row then return end
    jobs.delete(root, job, row)
    if not why then return end
    queue_counters.increment(root, row.queue, why)
    if row.place == 'leased' then jobs.note_withdrawn(root, job, row) end
end

-- Reads a job as a table; nil when it is missing or no job.
function jobs.read(root, job)
    return packed_jobs.read_all(keys.job(root, job))
end

-- Reads the invoke of a job; nil for one that no invoke requested, or that is gone.
function jobs.read_invoke(root, job)
    local row = packed_jobs.read(keys.job(root, job), 'invoke')
    return row and row.invoke
end

-- Tells whether this attempt of the job is the last one.
function jobs.is_last_attempt(row)
    return tonumber(row.attempt) >= tonumber(row.attempts or jobs.DEFAULT.attempts)
end

-- Answers the row of a job, with its queue and token, if the token holds it. Otherwise answers nil and why: 'withdrawn', 'gone'
-- (ended, or never existed) or 'taken back'. A job that is not leased has no token.
function jobs.check_held(root, job, token, row)
    if not row then return nil, redis.call('EXISTS', keys.withdrawn(root, job)) == 1 and 'withdrawn' or 'gone' end
    if row.token ~= token or token == '' then return nil, 'taken back' end
    row.place = 'leased'
    return row
end

-- Reads the queue and further fields of a job that the token holds, as above.
function jobs.read_held(root, job, token, ...)
    return jobs.check_held(root, job, token, packed_jobs.read(keys.job(root, job), 'token', ...))
end

-- Answers the length of a job's lease in ms, as it was taken or extended last.
function jobs.get_lease(row)
    return tonumber(row.extended or row.lease or jobs.DEFAULT.lease)
end

-- Appends the attempt that ends now to the log in the job's hash: JSON of the latest few. `outcome`: failed, lost, timeout
-- or handed back; `failure`: error and kind.
function jobs.append_attempt(row, now, outcome, failure)
    local ok, ended = pcall(cjson.decode, row.log or '[]')
    if not ok or type(ended) ~= 'table' then ended = {} end
    ended[#ended + 1] = { attempt = tonumber(row.attempt), worker = row.worker or '', taken = tonumber(row.taken or 0),
        ended = now, outcome = outcome, kind = failure.kind, error = strings.cut_head(failure.error, MAX_LOGGED) }
    if #ended > MAX_LOG then table.remove(ended, 1) end
    return cjson.encode(ended)
end

-- Makes a job ready and writes further fields.
function jobs.make_ready(root, job, row, from, now, ...)
    if from == 'leased' then jobs.leave_group(root, job, row, from) end
    local score = ready_order.compute_score(root, row.queue, job, row, from == 'leased')
    jobs.move(root, job, row.queue, from, 'ready', score, 'due', now, ...)
    jobs.ring_bell(root, row.queue)
end

function jobs.postpone(root, job, row, from, now, due, ...)
    jobs.move(root, job, row.queue, from, 'delayed', due, 'due', due, ...)
    jobs.leave_group(root, job, row, from)
    due_times.note(root, due, now)
end

-- Tells whether a job is still where a caller saw it. `seen`: its place, when it came there and its queue, or '' for anywhere.
function jobs.is_as_seen(row, seen)
    local place, since, queue = string.match(seen, '^(%l+) (%d+) (.+)$')
    return seen == '' or row.place == place and row.queue == queue
        and tonumber(row.finished or row.due or row.created) == tonumber(since)
end

-- Moves a ready or delayed job to a queue, which may be its own; `due`: until when it waits there, nil to leave that as it is.
-- Tells whether it moved: not when another open job of the queue has its unique key.
function jobs.reschedule(root, job, row, queue, due, now)
    local before, is_other = row.queue, row.queue ~= queue
    if is_other and row.unique and jobs.find_holder(root, queue, row.unique) then return false end
    local place, key = due and 'delayed' or row.place, keys.job(root, job)
    jobs.check_place(root, queue, place)
    redis.call('SADD', keys.queues(root), queue)
    local score = due or row.due
    if place == 'ready' then
        score = ready_order.compute_score(root, queue, job, row, (tonumber(row.attempt) or 0) > 0)
    end
    redis.call('ZADD', places[place](root, queue), score, job)
    if row.place == 'ready' then
        jobs.leave_group(root, job, row, 'ready')
        ready_order.give_back(root, before, row)
    end
    if is_other or place ~= row.place then redis.pcall('ZREM', places[row.place](root, before), job) end
    packed_jobs.spread(key)
    redis.call('HSET', key, 'place', place, 'queue', queue)
    if due then redis.call('HSET', key, 'due', due) end
    if is_other and row.unique then
        redis.call('SET', keys.unique(root, queue, row.unique), job)
        free_unique_key(root, before, row.unique, job)
    end
    if is_other then queue_counters.increment(root, before, 'moved') end
    if place == 'ready' then jobs.ring_bell(root, queue) else due_times.note(root, tonumber(score), now) end
    return true
end

-- Removes the oldest of the dead or handled jobs beyond the most that a queue keeps.
local function cap(root, queue, place)
    local key = places[place](root, queue)
    local over = redis.call('ZCARD', key) - MAX_DEAD
    if over > 0 then
        for _, oldest in ipairs(redis.call('ZRANGE', key, 0, over - 1)) do jobs.remove(root, oldest, 'purged') end
    end
end

-- Moves a job without attempts left to `place`: 'dead', or 'handled' when no instance waits for it any more.
function jobs.make_dead(root, job, row, now, place, ...)
    jobs.move(root, job, row.queue, row.place, place, now, 'finished', now, 'token', '', 'log', row.log or '[]', ...)
    jobs.leave_group(root, job, row, row.place)
    if row.unique then free_unique_key(root, row.queue, row.unique, job) end
    queue_counters.increment(root, row.queue, 'dead')
    version_counters.count_of(root, row.instance, 'dead')
    if place == 'dead' then jobs.note_failure(root, job) end
    cap(root, row.queue, place)
end

-- Moves a dead job to the handled ones: its instance no longer waits for it. Both are in the order of their deaths.
function jobs.make_handled(root, job, row, now)
    jobs.move(root, job, row.queue, 'dead', 'handled', row.finished or now, 'handled',
        math.max(now, tonumber(row.finished) or 0))
    cap(root, row.queue, 'handled')
end

-- Moves a handled job back to the dead ones.
function jobs.take_back_handled(root, job, row)
    jobs.move(root, job, row.queue, 'handled', 'dead', row.finished or 0)
    redis.call('HDEL', keys.job(root, job), 'handled')
    jobs.note_failure(root, job)
end

-- Moves those of the named jobs to the handled ones that are dead jobs of an invoke of the instance. Never throws: the check
-- of all jobs finds what could not be written.
function jobs.handle_all(root, id, named, now)
    for _, job in ipairs(named) do
        local row = jobs.read(root, job)
        if row and row.place == 'dead' and row.instance == id then
            if (row.invoke or '') ~= '' then pcall(jobs.make_handled, root, job, row, now) end
        else
            forget_dead(root, id, job)
        end
    end
end

-- Makes up to `limit` delayed jobs ready whose time has come.
function jobs.wake_delayed(root, queue, now, limit)
    local due = redis.call('ZRANGEBYSCORE', keys.delayed(root, queue), '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
    if not due[1] then return 0 end
    local ready, gone, woken = {}, {}, 0
    for i = 1, #due, 2 do
        local job = due[i]
        local key = keys.job(root, job)
        local row = packed_jobs.read(key, 'priority', 'group', 'weight', 'attempt')
        if row and row.place then packed_jobs.spread(key) end -- a plain job, which belongs elsewhere
        gone[#gone + 1] = job
        if row then
            local spec = { priority = row.priority, group = row.group, weight = row.weight }
            ready[#ready + 1] = ready_order.compute_score(root, queue, job, spec, (tonumber(row.attempt) or 0) > 0)
            ready[#ready + 1] = job
            woken = woken + 1
        end
    end
    if woken > 0 then redis.call('ZADD', keys.ready(root, queue), unpack(ready)) end
    for i = 2, #ready, 2 do redis.call('HSET', keys.job(root, ready[i]), 'place', 'ready') end
    redis.call('ZREM', keys.delayed(root, queue), unpack(gone))
    if woken > 0 then jobs.ring_bell(root, queue, woken) end
    return woken
end

return jobs
