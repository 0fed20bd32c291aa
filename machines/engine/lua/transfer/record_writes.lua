-- needs: data_indexes, dead_jobs, delivery, due_times, failures, jobs, keys, ready_order, timers
-- needs: version_counters
-- Writes a checked record: the instance with its indexes, history, timers, jobs, held and unsent messages. Jobs get new
-- numbers of their partition. Everything that can be wrong was found before the first write.
local record_writes = {}

local call, unpack, min = redis.call, unpack, math.min
local MAX_VALUES = 4000 -- in one command: Lua's stack holds 8000

local function push_all(key, items)
    for from = 1, #items, MAX_VALUES do call('RPUSH', key, unpack(items, from, min(from + MAX_VALUES - 1, #items))) end
end

-- Throws when a key of the instance or one of its indexes has another type.
local function check_keys(root, found)
    local ctx = found.ctx
    for state in string.gmatch(found.raw._state, '[^\n]+') do call('ZCARD', keys.state(root, state)) end
    for _, field in ipairs(ctx.program.indexed or {}) do call('ZCARD', field.lookup) end
    for _, fact in ipairs(ctx.program.facts or {}) do call('ZCARD', fact.lookup) end
    for _, key in ipairs({ keys.timers(root), keys.late(root) }) do call('ZCARD', key) end
    for _, key in ipairs({ keys.history(root, ctx.id), keys.held(root, ctx.id) }) do
        if call('LLEN', key) > 0 then call('DEL', key) end -- left by a key that was deleted by hand
    end
    call('HLEN', keys.meta(root))
    call('HLEN', keys.wrong(root))
    call('HLEN', keys.versions(root))
    call('XLEN', keys.outbox(root))
    call('SCARD', keys.queues(root))
end

local function check_queue(root, queue)
    for _, place in pairs(jobs.places) do call('ZCARD', place(root, queue)) end
end

-- A worker elsewhere may hold a leased job: here it is ready again, without that attempt.
local function release(row, now)
    row.place, row.token, row.worker, row.deadline, row.extended, row.due = 'ready', '', nil, nil, nil, now
    row.attempt = math.max(0, tonumber(row.attempt or 1) - 1)
end

-- Adds a job under a new number; answers that.
function record_writes.add_job(root, job, now)
    local row, queue = job.row, job.row.queue
    if row.place == 'leased' then release(row, now) end
    check_queue(root, queue)
    local id = jobs.make_id(root, call('HINCRBY', keys.meta(root), 'jobs', 1))
    local flat = {}
    for name, value in pairs(row) do flat[#flat + 1], flat[#flat + 2] = name, value end
    call('HSET', keys.job(root, id), unpack(flat))
    local score = row.place == 'ready' and ready_order.compute_score(root, queue, id, row) or job.score
    call('ZADD', jobs.places[row.place](root, queue), score, id)
    call('SADD', keys.queues(root), queue)
    if (row.unique or '') ~= '' and not jobs.has_ended(row.place) then
        call('SET', keys.unique(root, queue, row.unique), id, 'NX')
    end
    if row.place == 'delayed' then due_times.note(root, job.score, now) end
    if row.place == 'ready' then jobs.ring_bell(root, queue) end
    return id
end

local function add_jobs(root, found, now)
    local named = {}
    for _, job in ipairs(found.jobs) do named[job.id] = record_writes.add_job(root, job, now) end
    local awaited = {}
    for job in string.gmatch(found.raw._jobs or '', '%S+') do
        if named[job] then awaited[#awaited + 1] = named[job] end
    end
    found.raw._dead = nil
    if found.raw._jobs then found.raw._jobs = table.concat(awaited, ' ') end
    return named
end

local function add_timers(root, found, now)
    local ctx = found.ctx
    if found.raw._suspended or found.raw._done then return end
    for id, due in pairs(ctx.timers_before) do
        local member = timers.make_member(id, ctx.id)
        local again = found.late[member]
        if again then
            call('ZADD', keys.late(root), again, member)
            due_times.note(root, tonumber(again), now)
        else
            timers.schedule(root, ctx.id, id, due, now)
        end
    end
end

local function write_hash(found)
    local flat = {}
    for name, value in pairs(found.raw) do flat[#flat + 1], flat[#flat + 2] = name, value end
    call('HSET', found.ctx.key, unpack(flat))
end

-- Writes an instance that is not there.
function record_writes.write_instance(root, found, now)
    local ctx = found.ctx
    ctx.key = keys.instance(root, ctx.id)
    check_keys(root, found)
    for _, job in ipairs(found.jobs) do check_queue(root, job.row.queue) end
    for state in string.gmatch(found.raw._state, '[^\n]+') do
        call('ZADD', keys.state(root, state), found.entered[state] or found.raw._entered, ctx.id)
    end
    push_all(keys.history(root, ctx.id), found.history)
    push_all(keys.held(root, ctx.id), found.held)
    add_timers(root, found, now)
    local named = add_jobs(root, found, now)
    write_hash(found)
    data_indexes.add_instance(ctx)
    call('HINCRBY', keys.meta(root), 'instances', 1)
    version_counters.add(root, ctx.program.version, false)
    for cause, words in pairs(found.causes) do failures.note(root, ctx.id, named[cause] or cause, words[1], words[2]) end
    for _, job in ipairs(found.jobs) do
        if job.row.place == 'dead' then pcall(dead_jobs.judge, root, named[job.id], now) end
    end
    for i = 1, #found.messages, 4 do
        delivery.post(root, found.messages[i], found.messages[i + 1], found.messages[i + 2], cjson.decode(found.messages[i + 3]))
    end
end

return record_writes
