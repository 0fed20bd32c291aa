-- needs: arguments, chart, commit, configurations, fields, idempotency, instances, jobs, json, keys, permits, previews
-- needs: replies, values
-- What all repairs have in common: their arguments, the data they may change, and a preview of each. A call is {id, expect,
-- actor, reason, now, key, dry, permit}, all text; `dry` is 'dry' for a preview, which needs no reason.
local repairs = {}


-- Parses the call from ARGV, where from `at` on come: expect, actor, reason, now, key, dry, permit.
function repairs.parse_call(ARGV, at)
    return { id = ARGV[1], expect = ARGV[at] or '', actor = ARGV[at + 1] or '', reason = ARGV[at + 2] or '',
        now = ARGV[at + 3] or '', key = ARGV[at + 4] or '', dry = ARGV[at + 5] or '', permit = ARGV[at + 6] or '' }
end

-- Parses a call without a key: id, expect, actor, reason and now, and from `at` on dry and permit.
function repairs.parse_hold(ARGV, at)
    return repairs.parse_call({ ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], '', ARGV[at], ARGV[at + 1] }, 2)
end

-- Opens the instance to repair; ends the call with the reply when there is none, or when the key was used before.
function repairs.open(root, call)
    arguments.refuse(arguments.check_present(call.id, 'the id')
        or arguments.check(call.expect, call.key, call.actor, call.reason, call.now))
    arguments.need(call.dry == '' or call.dry == 'dry', "a repair is previewed with 'dry', or done with ''")
    arguments.need(call.dry ~= '' or string.find(call.reason, '%S'), 'a repair needs a reason')
    local first = call.key ~= '' and call.dry == '' and idempotency.find(root, call.id, call.key)
    if first then replies.send(first) end
    local ctx = instances.demand(root, call.id, arguments.read_now(call.now), call.expect)
    if call.permit ~= '' then ctx.before = ctx.raw._state end
    return ctx
end

-- Changes data by an object of fields and values, where null unsets; nil, or a sentence and the field.
function repairs.patch_data(ctx, text)
    if text == '' then return nil end
    local ok, data = pcall(json.read, text)
    if not ok then return values.describe_error(data), '' end
    if values.kind_of(data) ~= 'object' then return 'data is a JSON object, not ' .. values.kind_of(data), '' end
    for name, value in pairs(data) do
        local field = ctx.program.fields[name]
        if not field then return "no data field '" .. name .. "'", name end
        if value == json.null and not fields.has_type(nil, field.types) then
            fields.clear(ctx, field)
        else
            local fine, caught = pcall(fields.write, ctx, field, values.to_nil(value))
            if not fine then return values.describe_error(caught), name end
        end
    end
    local fine, caught = pcall(fields.check_size, ctx)
    if not fine then return values.describe_error(caught), '' end
    return nil
end

-- Resets all data to that of a new instance before its first action.
function repairs.reset_data(ctx)
    for _, field in ipairs(ctx.program.ordered) do
        if field.initial then fields.put_raw(ctx, field, field.initial) else fields.clear(ctx, field) end
    end
end

-- Puts the instance into these states without any action; ends the call with BADARG where that is not possible.
function repairs.place(ctx, targets)
    local ready, caught = pcall(chart.enter_states, ctx, targets)
    arguments.refuse(not ready and values.describe_error(caught))
end

-- Parses states by name, one in each line, to a set that can be active together; ends the call with BADARG for others.
function repairs.parse_targets(ctx, text)
    local targets = {}
    for name in string.gmatch(text or '', '[^\n]+') do
        local index = arguments.need(ctx.program.index[name], "the definition has no state '" .. name .. "'")
        arguments.need(ctx.program.states[index].kind ~= 'history', "'" .. name .. "' is a history, not a state")
        targets[#targets + 1] = index
    end
    arguments.need(targets[1], 'the state is missing')
    targets = configurations.keep_innermost(ctx.program, targets)
    local is_possible = not targets[2] or ctx.chart and configurations.can_be_together(ctx.program, targets)
    arguments.need(is_possible, 'these states are never active together')
    return targets
end

-- Answers the reply when the action needs the approval of a second person and has none; nil when it may be done.
function repairs.check_approval(ctx, action, permit, actor)
    if permit == '' then return nil end
    local bad = permits.read(ctx, permit, actor)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    return ctx.permit and permits.needs_approval(ctx, action) and replies.build_approval(ctx, action) or nil
end

-- Ends the call with that reply.
function repairs.demand_approval(ctx, action, permit, actor)
    local refusal = repairs.check_approval(ctx, action, permit, actor)
    if refusal then replies.send(refusal) end
end

-- Checks the approval of an action on the instance that waits for a job.
function repairs.check_job_approval(root, job, action, permit, actor, now)
    local row = permit ~= '' and jobs.read(root, job)
    if not row or (row.invoke or '') == '' then return nil end
    local ctx = instances.open(root, row.instance, now)
    return ctx and repairs.check_approval(ctx, action, permit, actor)
end

-- Commits the repair, or previews it. `event` is its name in the history, the repair in parentheses; `history_payload` its
-- payload there.
function repairs.finish(ctx, call, event, history_payload)
    if call.dry ~= '' then return previews.build_reply(ctx) end
    repairs.demand_approval(ctx, string.sub(event, 2, -2), call.permit, call.actor)
    local ok, fault = commit.write_step(ctx, event, call.actor, call.reason, history_payload or '0')
    if not ok then return { replies.FAULT, fault } end
    return repairs.store_reply(ctx, call)
end

-- Builds the reply and stores it for a repeated call with the same key.
function repairs.store_reply(ctx, call)
    local reply = replies.build_instance(ctx)
    if call.key ~= '' then idempotency.store(keys.outcome(ctx.program.root, call.id, call.key), reply) end
    return reply
end

return repairs
