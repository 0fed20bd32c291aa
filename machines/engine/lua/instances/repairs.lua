-- needs: arguments, commit, configurations, core, fields, idempotency, instances, jobs, json, keys, permits, previews
-- needs: replies, values
-- What all repairs have in common: how they are asked for, what they may write, and that each can be looked at before.
-- A call is {id, expect, actor, reason, now, key, dry, permit}, all text; `dry` is 'dry' for a preview, which needs no reason.
local repairs = {}

local function unfit(call)
    local bad = arguments.check_present(call.id, 'the id')
        or arguments.check(call.expect, call.key, call.actor, call.reason, call.now)
    if bad then return bad end
    if call.dry ~= '' and call.dry ~= 'dry' then return "a repair is previewed with 'dry', or done with ''" end
    if call.dry == '' and not string.find(call.reason, '%S') then return 'a repair needs a reason' end
    return nil
end

-- The call in ARGV, whose words from `at` on are: expect, actor, reason, now, key, dry, permit.
function repairs.call(ARGV, at)
    return { id = ARGV[1], expect = ARGV[at] or '', actor = ARGV[at + 1] or '', reason = ARGV[at + 2] or '',
        now = ARGV[at + 3] or '', key = ARGV[at + 4] or '', dry = ARGV[at + 5] or '', permit = ARGV[at + 6] or '' }
end

-- The instance to be repaired; nil and the reply where there is none, or where the key has been answered before.
function repairs.open(root, call)
    local bad = unfit(call)
    if bad then return nil, { replies.BAD_ARGUMENT, bad } end
    if call.key ~= '' and call.dry == '' then
        local first = idempotency.find(root, call.id, call.key)
        if first then return nil, first end
    end
    local ctx, missing = instances.open(root, call.id, arguments.read_now(call.now))
    if not ctx then return nil, missing end
    if call.expect ~= '' and tonumber(call.expect) ~= ctx.version then
        return nil, { replies.CONFLICT, ctx.raw._version }
    end
    return ctx
end

-- Changes data as an object of fields and values says, null unsetting; nil, or a sentence and the field.
function repairs.patch(ctx, text)
    if text == '' then return nil end
    local ok, data = pcall(json.read, text)
    if not ok then return values.message(data), '' end
    if values.kind(data) ~= 'object' then return 'data is a JSON object, not ' .. values.kind(data), '' end
    for name, value in pairs(data) do
        local field = ctx.program.fields[name]
        if not field then return "no data field '" .. name .. "'", name end
        if value == json.null and not fields.has_type(nil, field.types) then
            fields.clear(ctx, field)
        else
            local fine, caught = pcall(fields.write, ctx, field, values.plain(value))
            if not fine then return values.message(caught), name end
        end
    end
    local fine, caught = pcall(fields.check_size, ctx)
    if not fine then return values.message(caught), '' end
    return nil
end

-- All data as a new instance has it before its first action.
function repairs.renew(ctx)
    for _, field in ipairs(ctx.program.ordered) do
        if field.initial then fields.put_raw(ctx, field, field.initial) else fields.clear(ctx, field) end
    end
end

local function put(ctx, targets)
    core.place(ctx, targets)
    if not ctx.chart then commit.prepare(ctx) end
end

-- Puts it into these states without any action; nil, or why that cannot be.
function repairs.place(ctx, targets)
    local ready, caught = pcall(put, ctx, targets)
    return not ready and values.message(caught) or nil
end

-- States by name, a line each, as what may be active together; nil and why not.
function repairs.targets(ctx, text)
    local targets = {}
    for name in string.gmatch(text or '', '[^\n]+') do
        local index = ctx.program.index[name]
        if not index then return nil, "the definition has no state '" .. name .. "'" end
        if ctx.program.states[index].kind == 'history' then return nil, "'" .. name .. "' is a history, not a state" end
        targets[#targets + 1] = index
    end
    if not targets[1] then return nil, 'the state is missing' end
    targets = configurations.innermost(ctx.program, targets)
    if targets[2] and not (ctx.chart and configurations.together(ctx.program, targets)) then
        return nil, 'these states are never active together'
    end
    return targets
end

-- The reply where the action takes a second person, who has not approved it; nil where it may be done.
function repairs.alone(ctx, action, permit, actor)
    if permit == '' then return nil end
    local bad = permits.carry(ctx, permit, actor)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    return ctx.permit and permits.lacks_second(ctx, action) and replies.build_approval(ctx, action) or nil
end

-- The same for what is done to the instance that waits for a job.
function repairs.alone_on_job(root, job, action, permit, actor, now)
    local row = permit ~= '' and jobs.read(root, job)
    if not row or (row.invoke or '') == '' then return nil end
    local ctx = instances.open(root, row.instance, now)
    return ctx and repairs.alone(ctx, action, permit, actor)
end

-- The step, or what it would be. `event` is its name in the history, that of the repair in parentheses; `noted` its payload
-- there.
function repairs.finish(ctx, call, event, noted)
    if call.dry ~= '' then return previews.reply(ctx) end
    local held = repairs.alone(ctx, string.sub(event, 2, -2), call.permit, call.actor)
    if held then return held end
    local ok, fault = commit.step(ctx, event, call.actor, call.reason, noted or '0')
    if not ok then return { replies.FAULT, fault } end
    return repairs.keep(ctx, call)
end

-- The reply for what was done, kept for whoever asks again with the same key.
function repairs.keep(ctx, call)
    local reply = replies.build_instance(ctx)
    if call.key ~= '' then idempotency.store(keys.outcome(ctx.program.root, call.id, call.key), reply) end
    return reply
end

return repairs
