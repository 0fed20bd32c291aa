-- needs: chart_writes, data_indexes, history_entries, json, pulse, step_jobs, step_plan, timers, values, work_budget
-- Writes interpreted steps: collects what the hash and the history get, and carries out the plan of the writes. When a write
-- fails, because of a key of another type for example, the earlier writes are undone.
local commit = {}

local call, pcall, unpack = redis.call, pcall, unpack

local MAX_VALUES = 4000 -- values in one command: Lua's stack holds 8000 values

-- The arguments of HSET, overwritten by every commit; only as many are sent as the commit has filled in.
local hash_values = {}

-- Adds the changed data to the arguments of HSET. Answers their new count, the names for HDEL, and the changes as the
-- history holds them.
local function collect_data(ctx, args, count, gone)
    local changed, raw, set, unset_text = ctx.changed, ctx.raw, '', ''
    for i = 1, #changed do
        local field = changed[i]
        local name = field.name
        local value = raw[name]
        if value then
            args[count + 1], args[count + 2] = name, value
            count = count + 2
            set = set .. field.set_mark .. (field.plain and value or field.as_json(value))
        else
            gone = gone or {}
            gone[#gone + 1] = name
            unset_text = unset_text .. field.unset_mark
        end
    end
    return count, gone, set .. unset_text
end

-- Adds the bookkeeping fields that only charts, children and suspended instances have. Nothing is written here.
local function collect_bookkeeping(ctx, args, count)
    local raw, gone = ctx.raw, nil
    if not (ctx.timers_changed or ctx.children_changed or ctx.has_ended or next(ctx.changed_meta)) then return count end
    if ctx.timers_changed then raw._timers = timers.encode(ctx) end
    if ctx.children_changed then raw._children = next(ctx.children) and cjson.encode(ctx.children) or nil end
    if ctx.has_ended then raw._done = '1' end
    local changed = { _timers = ctx.timers_changed, _children = ctx.children_changed, _done = ctx.has_ended }
    for name in pairs(ctx.changed_meta) do changed[name] = true end
    for name in pairs(changed) do
        if raw[name] then
            args[count + 1], args[count + 2] = name, raw[name]
            count = count + 2
        else
            gone = gone or {}
            gone[#gone + 1] = name
        end
    end
    return count, gone
end

-- Answers the number of arguments, the names for HDEL, and the changes of the data as the history holds them.
local function collect_hash(ctx, revision, stamp)
    local raw, args, count = ctx.raw, hash_values, 2
    args[1], args[2] = '_version', revision
    raw._version = revision
    if ctx.moved then
        raw._state, raw._entered = ctx.config.text, stamp
        args[3], args[4], args[5], args[6] = '_state', raw._state, '_entered', stamp
        count = 6
    end
    if ctx.is_new then
        args[count + 1], args[count + 2], args[count + 3], args[count + 4] = '_def', raw._def, '_created', raw._created
        count = count + 4
        if raw._parent then
            args[count + 1], args[count + 2] = '_parent', raw._parent
            count = count + 2
        end
    end
    if ctx.actor_changed then
        args[count + 1], args[count + 2] = '_actor', raw._actor
        count = count + 2
    end
    local removed
    count, removed = collect_bookkeeping(ctx, args, count)
    if ctx.came_changed then
        if raw._came then
            args[count + 1], args[count + 2], count = '_came', raw._came, count + 2
        else
            removed = removed or {}
            removed[#removed + 1] = '_came'
        end
    end
    return collect_data(ctx, args, count, removed)
end

-- Splits more values than one command can take.
local function call_in_parts(command, key, args, count)
    for from = 1, count, MAX_VALUES do
        call(command, key, unpack(args, from, math.min(from + MAX_VALUES - 1, count)))
    end
end

local function write_hash(ctx, awaited, count, gone)
    local args = hash_values
    if ctx.ending or awaited ~= (ctx.raw._jobs or '') then
        args[count + 1], args[count + 2] = '_jobs', awaited
        ctx.raw._jobs = awaited
        count = count + 2
    end
    local key = ctx.key
    if count <= MAX_VALUES then call('HSET', key, unpack(args, 1, count)) else call_in_parts('HSET', key, args, count) end
    if gone then call_in_parts('HDEL', key, gone, #gone) end
end

-- Stores the actor until another one acts. Timers, jobs and other instances are no actors.
local function store_actor(ctx, actor)
    if ctx.by_engine or ctx.ending or ctx.raw._actor == actor then return end
    ctx.actor_changed, ctx.previous_actor, ctx.raw._actor = true, ctx.raw._actor, actor
end

local function describe_entry(ctx, event)
    if ctx.program.history == 0 then return end
    return history_entries.describe(ctx.program, ctx.edges, event, ctx.config.leaves)
end

local carry_out = step_plan.make({
    indexes = 'write_indexes(step)',
    texts = 'local count, removed, changes = collect_hash(step, revision, stamp)'
        .. ' local entry_begin, entry_rest = describe_entry(step, event)',
    entry_begin = 'entry_begin',
    entry_rest = 'entry_rest',
    event = 'event',
    instance = 'write_hash(step, awaited, count, removed)',
}, {
    { 'write_indexes', data_indexes.write }, { 'collect_hash', collect_hash }, { 'describe_entry', describe_entry },
    { 'write_hash', write_hash }, { 'number', json.number },
})

local function describe_failure(caught)
    return type(caught) == 'table' and caught.err or values.describe_error(caught)
end

-- Writes the step. `history_payload`: the payload as JSON for the history, or '0'; `clock`: ms of the server's clock where
-- the caller has read it. Answers true, or nil and why nothing was written.
function commit.write_step(ctx, event, actor, reason, history_payload, clock)
    work_budget.stop()
    local raw = ctx.raw
    if actor ~= '' then store_actor(ctx, actor) end
    local awaited, gone = step_jobs.leave(ctx, raw._jobs or '', ctx.ending)
    local ok, caught = step_plan.try(carry_out, ctx, ctx.id, ctx.key, ctx.batch, ctx.now, clock or pulse.read_clock(),
        json.number(ctx.revision + 1), json.number(ctx.now), tonumber(raw._created) or 0, raw._entered, event, actor,
        reason, history_payload, awaited, gone)
    if ok then return true end
    return nil, describe_failure(caught)
end

local function request_and_log(ctx)
    step_jobs.request(ctx, ctx.id, ctx.now)
    step_plan.log_effects(ctx, ctx.id, ctx.revision + 1)
end

-- Writes only jobs and log entries. Throws when that is not possible, and leaves no job then.
function commit.carry_out_effects(ctx)
    work_budget.stop()
    step_jobs.begin()
    step_jobs.leave(ctx, '')
    local ok, caught = pcall(request_and_log, ctx)
    if not ok then
        step_jobs.undo()
        error(caught, 0)
    end
    step_jobs.ring()
end

local function rewrite(ctx, undo_log)
    local count, gone = collect_bookkeeping(ctx, hash_values, 0)
    if ctx.timers_changed then chart_writes.write_timers(ctx, undo_log) end
    if ctx.messages[1] then chart_writes.post_messages(ctx, undo_log) end
    if count > 0 then call('HSET', ctx.key, unpack(hash_values, 1, count)) end
    if gone then call('HDEL', ctx.key, unpack(gone)) end
end

-- Writes only bookkeeping: a timer that ended, a message that was sent. No step: revision and history stay.
function commit.write_bookkeeping(ctx)
    work_budget.stop()
    local undo_log = {}
    local ok, caught = pcall(rewrite, ctx, undo_log)
    if ok then
        pulse.ring(ctx.program.root)
        return true
    end
    chart_writes.undo(undo_log)
    return nil, describe_failure(caught)
end

return commit
