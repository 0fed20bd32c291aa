-- needs: due_times, jobs, json, keys, timers
-- What a chart's step writes beside its hash, history and flow: places in the indexes, timers, messages, jobs. Each write
-- leaves behind how to take it back.
local chart_writes = {}

local call, pcall_redis = redis.call, redis.pcall

-- How to take a write back: four items each, a command and its words.
local function note(back, command, key, first, second)
    local at = #back
    back[at + 1], back[at + 2], back[at + 3], back[at + 4] = command, key, first, second
end

-- Leaves entered get the moment.
function chart_writes.index(ctx, back, stamp)
    local states, leaves, was = ctx.program.states, ctx.config.leaves, ctx.was
    for i = 1, #leaves do
        local leaf = leaves[i]
        if ctx.fresh[leaf] then
            local key, before = states[leaf].index_key, nil
            if was and was.active[leaf] then before = call('ZSCORE', key, ctx.id) end
            call('ZADD', key, stamp, ctx.id)
            if before then note(back, 'ZADD', key, before, ctx.id) else note(back, 'ZREM', key, ctx.id, false) end
        end
    end
end

-- Leaves that were left lose the instance. The last write of a step: what it takes away it could not give back. A key of
-- another type does not hold the instance.
function chart_writes.unindex(ctx)
    local states, was, active = ctx.program.states, ctx.was, ctx.config.active
    if not was then return end
    for i = 1, #was.leaves do
        local leaf = was.leaves[i]
        if not active[leaf] then
            local done = pcall_redis('ZREM', states[leaf].index_key, ctx.id)
            if type(done) == 'table' and done.err and not string.find(done.err, 'WRONGTYPE', 1, true) then error(done, 0) end
        end
    end
end

-- Which of the jobs the instance waited for belong to states it left; the ids of those that stay, and the others.
function chart_writes.sorted_jobs(ctx, waiting)
    local kept, gone, root = {}, {}, ctx.program.root
    for job in string.gmatch(waiting, '%S+') do
        local state = ctx.program.invoked_by[redis.pcall('HGET', keys.job(root, job), 'invoke')]
        if ctx.over or not state or ctx.left[state] then gone[#gone + 1] = job else kept[#kept + 1] = job end
    end
    return kept, gone
end

-- The due times in the partition's own list, as the instance's list now has them; those of a suspended one wait.
function chart_writes.schedule(ctx, back)
    local root, before, now = ctx.program.root, ctx.timers_before, {}
    local key = keys.timers(root)
    for _, timer in ipairs(ctx.timers) do
        local id, due = timer[1], timer[2]
        now[id] = true
        if before[id] ~= due and not ctx.raw._suspended then
            timers.schedule(root, ctx.id, id, due, ctx.now)
            note(back, 'ZREM', key, timers.make_member(id, ctx.id), false)
        end
    end
    for id, due in pairs(before) do
        if not now[id] then
            timers.unschedule(root, ctx.id, id)
            note(back, 'ZADD', key, due, timers.make_member(id, ctx.id))
        end
    end
end

function chart_writes.post(ctx, back)
    local key = keys.outbox(ctx.program.root)
    due_times.note_messages(ctx.program.root)
    for _, mail in ipairs(ctx.mail) do
        local id = call('XADD', key, '*', 'kind', mail.kind, 'machine', mail.machine, 'id', mail.id,
            'body', cjson.encode(mail.body))
        note(back, 'XDEL', key, id, false)
    end
end

-- `,"name"` or `,["one","other"]`, as a history entry tells the configuration.
function chart_writes.quoted(config)
    if not config.quoted then
        local names = config.names
        config.quoted = ',' .. (names[2] and json.encode(json.list({ unpack(names) })) or json.quote(names[1]))
    end
    return config.quoted
end

-- In reverse, whatever happens.
function chart_writes.take_back(back)
    for i = #back - 3, 1, -4 do
        if back[i + 3] then
            pcall_redis(back[i], back[i + 1], back[i + 2], back[i + 3])
        else
            pcall_redis(back[i], back[i + 1], back[i + 2])
        end
    end
end

return chart_writes
