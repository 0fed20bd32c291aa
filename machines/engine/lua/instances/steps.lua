-- needs: chart, commit, core, instances, payloads, permits, replies, values, work_budget
-- One event on one opened instance, from the core through the commit to the reply.
local steps = {}

-- The macrostep, and the work of the state it ends in; nothing is written. Answers as `core.step` does.
function steps.settle(ctx, event, payload, facts)
    local taken, failure = core.step(ctx, event, payload, facts)
    if taken and ctx.moved and not ctx.chart and ctx.program.states[ctx.state].invokes[1] then
        local ok, caught = pcall(commit.prepare, ctx)
        if not ok then return nil, chart.failure(ctx, caught) end
    end
    return taken, failure
end

-- {OK, ...}, {REFUSED, explanation}, {FAULT, why}, and of a step that carries a permit what that does not let it do; in all but
-- the first case nothing was written.
-- `facts`: what the event is beside its name and payload (SCXML 5.10.1), for those that no person sent.
function steps.fire(ctx, event, payload, actor, reason, noted, clock, facts)
    local taken, failure = steps.settle(ctx, event, payload, facts)
    if not taken then
        if ctx.barred then return replies.build_not_allowed(ctx, event) end
        local before = failure and instances.again(ctx) or ctx
        before.payload, before.work, before.exhausted = payload, ctx.work, ctx.exhausted
        return { replies.REFUSED, replies.encode_explanation(before, event, replies.explain_refusal(before, event, failure)) }
    end
    if ctx.permit and permits.lacks_second(ctx, 'fire:' .. event) then return replies.build_approval(ctx, 'fire:' .. event) end
    ctx.own = facts
    local ok, why = commit.step(ctx, event, actor, reason, noted or payloads.note(payload), clock)
    if not ok then return { replies.FAULT, why } end
    return replies.build_instance(ctx)
end

-- The same without the commit.
function steps.explain(ctx, event, payload)
    local taken, failure = steps.settle(ctx, event, payload)
    local work = ctx.work or work_budget.count_spent()
    local before = instances.again(ctx)
    before.payload, before.work, before.exhausted = payload, work, ctx.exhausted
    local seen = replies.explain_refusal(before, event, failure)
    if taken then
        seen.why, seen.after = nil, ctx
    end
    return { replies.OK, replies.encode_explanation(before, event, seen) }
end

return steps
