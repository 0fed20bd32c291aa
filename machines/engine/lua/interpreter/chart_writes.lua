-- needs: due_times, json, keys, timers, traces
-- Writes what only charts have: timers and messages. Each write logs how to undo it.
local chart_writes = {}

local call, pcall_redis = redis.call, redis.pcall

-- Logs how to undo a write: four items each, a command and its arguments.
local function log_undo(undo_log, command, key, first, second)
    local at = #undo_log
    undo_log[at + 1], undo_log[at + 2], undo_log[at + 3], undo_log[at + 4] = command, key, first, second
end

-- Removes an instance from the index of a leaf. A key of another type does not hold the instance.
function chart_writes.remove_from_index(key, id)
    local done = pcall_redis('ZREM', key, id)
    if type(done) == 'table' and done.err and not string.find(done.err, 'WRONGTYPE', 1, true) then error(done, 0) end
end

-- Writes the changes of the instance's timers to the partition's due times. Timers of a suspended instance wait.
function chart_writes.write_timers(ctx, undo_log)
    local root, before, now = ctx.program.root, ctx.timers_before, {}
    local key = keys.timers(root)
    for _, timer in ipairs(ctx.timers) do
        local id, due = timer[1], timer[2]
        now[id] = true
        if before[id] ~= due and not ctx.raw._suspended then
            timers.schedule(root, ctx.id, id, due, ctx.now)
            log_undo(undo_log, 'ZREM', key, timers.make_member(id, ctx.id), false)
        end
    end
    for id, due in pairs(before) do
        if not now[id] then
            timers.unschedule(root, ctx.id, id)
            log_undo(undo_log, 'ZADD', key, due, timers.make_member(id, ctx.id))
        end
    end
end

function chart_writes.post_messages(ctx, undo_log)
    local key = keys.outbox(ctx.program.root)
    due_times.note_messages(ctx.program.root)
    for _, message in ipairs(ctx.messages) do
        message.body.traceparent = traces.current
        local id = call('XADD', key, '*', 'kind', message.kind, 'machine', message.machine, 'id', message.id,
            'body', cjson.encode(message.body))
        log_undo(undo_log, 'XDEL', key, id, false)
    end
end

-- Quotes the configuration for a history entry: `,"name"` or `,["one","other"]`.
function chart_writes.quote_configuration(config)
    if not config.quoted then
        local names = config.names
        config.quoted = ',' .. (names[2] and json.encode(json.list({ unpack(names) })) or json.quote(names[1]))
    end
    return config.quoted
end

-- Undoes the logged writes in reverse order; never throws.
function chart_writes.undo(undo_log)
    for i = #undo_log - 3, 1, -4 do
        if undo_log[i + 3] then
            pcall_redis(undo_log[i], undo_log[i + 1], undo_log[i + 2], undo_log[i + 3])
        else
            pcall_redis(undo_log[i], undo_log[i + 1], undo_log[i + 2])
        end
    end
end

return chart_writes
