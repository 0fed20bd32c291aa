-- needs: instances, migration, undo_records, version_gates
-- Evaluates the way back of a plan; writes nothing.
local way_back = {}

-- Evaluates an instance: by its undo record where that still applies, else as any plan does. Answers as `migration.evaluate`.
function way_back.evaluate(plan, root, id, now)
    local ctx = instances.open(root, id, now)
    if ctx and ctx.raw._def ~= plan.target.def then
        local record, is_elsewhere = undo_records.find(plan, ctx)
        if is_elsewhere then
            return { outcome = 'kept', code = 'SB618', before = ctx,
                reason = 'it came from another version than the plan leads to' }
        end
        if record and not version_gates.check(plan.gates, ctx.raw, plan.target.def) then
            local result, why = undo_records.restore(plan, ctx, record, now)
            if not result then return { outcome = 'refused', code = 'SB617', reason = why, before = ctx } end
            result.effects = { 'it is as it was before the move' }
            return result
        end
    end
    return migration.evaluate(plan, root, id, now)
end

return way_back
