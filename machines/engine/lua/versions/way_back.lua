-- needs: instances, migration, migration_marks, undo_records, version_gates
-- Evaluates the way back of a plan; writes nothing.
local way_back = {}

local function keep(ctx, code, reason)
    return { outcome = 'kept', code = code, reason = reason, before = ctx }
end

-- Evaluates an instance that the plan brought to its version: by its undo record where that still applies, else as any plan
-- does. Every other one stays. Answers as `migration.evaluate`.
function way_back.evaluate(plan, root, id, now)
    local ctx = instances.open(root, id, now)
    if not ctx or not plan.spec.inverse_of or not plan.from[ctx.raw._def] then return migration.evaluate(plan, root, id, now) end
    local record = undo_records.read(plan, ctx)
    local moved_from = migration_marks.find_source(ctx.raw, plan.spec.inverse_of) or record and string.match(record.def, '^%d+')
    if not moved_from then
        local version = string.match(ctx.raw._def, '^%d+')
        return keep(ctx, 'SB634', 'plan ' .. plan.spec.inverse_of .. ' did not bring it to version ' .. version)
    end
    if moved_from ~= plan.target.version then
        return keep(ctx, 'SB618', 'it came from another version than the plan leads to')
    end
    if not record or not undo_records.applies(record, ctx) or version_gates.check(plan.gates, ctx.raw, plan.target.def) then
        return migration.evaluate(plan, root, id, now)
    end
    local result, why = undo_records.restore(plan, ctx, record, now)
    if not result then return { outcome = 'refused', code = 'SB617', reason = why, before = ctx } end
    result.effects = { 'it is as it was before the move' }
    return result
end

return way_back
