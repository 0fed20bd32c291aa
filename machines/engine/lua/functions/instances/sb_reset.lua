-- needs: arguments, fields, repairs, replies, timers, values
-- sb_reset: a repair: returns to the initial configuration and, unless data is kept, to the data declared for a new
-- instance. Runs no action. Jobs, timers and children of the states left are removed, and so are delayed events to itself
-- and what its history states have recorded; the invokes of the states entered begin.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 'keep' to keep its data, or '' · 3 expect (revision or '') · 4 actor · 5 reason (required)
--          · 6 now (ms since the epoch, or '') · 7 idempotency key or '' · 8 'dry' for a preview, or ''
--          · 9 permit (as sb_fire)
-- Returns: {OK, '', replayed 0|1, instance JSON}, or {OK, preview JSON} · {CONFLICT, revision} · {NOINSTANCE} · {NOMACHINE}
--          · {APPROVAL, ...} as sb_fire
--          · {BADPAYLOAD, why, field} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    as sb_fire
local function clear_memory(ctx)
    timers.clear(ctx)
    for _, name in ipairs(ctx.program.histories) do
        if ctx.raw[name] then ctx.raw[name], ctx.changed_meta[name] = nil, true end
    end
end

return function(KEYS, ARGV)
    local call, data = repairs.parse_call(ARGV, 3), ARGV[2] or ''
    arguments.need(data == '' or data == 'keep', "data is kept with 'keep', or reset with ''")
    local ctx = repairs.open(KEYS[1], call)
    if data == '' then
        repairs.reset_data(ctx)
        local fine, caught = pcall(fields.check_size, ctx)
        if not fine then return { replies.BAD_PAYLOAD, values.describe_error(caught), '' } end
    end
    clear_memory(ctx)
    repairs.place(ctx, ctx.program.initial.targets)
    return repairs.finish(ctx, call, '(reset)')
end
