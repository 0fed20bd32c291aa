-- needs: chart, commit, history_entries, instances, payloads, permits, replies, work_budget
-- One event on one opened instance: interpreter, commit, reply.
local steps = {}

-- Fires an event: {OK, ...}, {REFUSED, explanation}, {FAULT, why}, or for a step with a permit NOTALLOWED or APPROVAL; only
-- {OK, ...} has written anything. `facts`: the fields of an event that no person sent, beside name and payload (SCXML
-- 5.10.1); `row`: the job whose end it is.
function steps.fire(ctx, event, payload, actor, reason, history_payload, clock, facts, row)
    local taken, failure = chart.step(ctx, event, payload, facts)
    if not taken then
        if ctx.not_allowed then return replies.build_not_allowed(ctx, event) end
        local before = failure and instances.reopen(ctx) or ctx
        return { replies.REFUSED, replies.explain_step(ctx, before, event, payload, false, failure) }
    end
    if ctx.permit and permits.needs_approval(ctx, 'fire:' .. event) then return replies.build_approval(ctx, 'fire:' .. event) end
    ctx.by_engine = facts
    -- Encoding a large payload takes much of the work that a step may need: after the step.
    local kept = history_payload or payloads.encode_for_history(payload)
    work_budget.stop()
    if row then kept = history_entries.add_job(kept, row, ctx.now) end
    local ok, why = commit.write_step(ctx, event, actor, reason, kept, clock)
    if not ok then return { replies.FAULT, why } end
    return replies.build_instance(ctx)
end

-- Explains an event: the same step without the commit.
function steps.explain(ctx, event, payload)
    local taken, failure = chart.step(ctx, event, payload)
    ctx.work = ctx.work or work_budget.count_spent()
    local before = (taken or failure) and instances.reopen(ctx) or ctx
    return { replies.OK, replies.explain_step(ctx, before, event, payload, taken, failure) }
end

return steps
