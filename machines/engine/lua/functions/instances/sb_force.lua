-- needs: repairs, replies
-- sb_force: a repair: sets the state of an instance (and some data) without a transition. Runs no action; jobs of the state
-- left are withdrawn, those of the state entered are enqueued.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 state (of a chart: one or several, one in each line) · 3 data to change (JSON object, null unsets; or
--          '') · 4 expect (revision or '') · 5 actor · 6 reason (required) · 7 now (ms since the epoch, or '') · 8
--          idempotency key or '' · 9 'dry' for a preview, or '' · 10 permit (as sb_fire)
-- Returns: {OK, '', replayed 0|1, instance JSON}, or {OK, preview JSON} · {CONFLICT, revision} · {NOINSTANCE} · {NOMACHINE}
--          · {APPROVAL, ...} as sb_fire
--          · {BADPAYLOAD, why, field} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    as sb_fire
return function(KEYS, ARGV)
    local call = repairs.parse_call(ARGV, 4)
    local ctx = repairs.open(KEYS[1], call)
    local targets = repairs.parse_targets(ctx, ARGV[2])
    local why, field = repairs.patch_data(ctx, ARGV[3] or '')
    if why then return { replies.BAD_PAYLOAD, why, field } end
    repairs.place(ctx, targets)
    return repairs.finish(ctx, call, '(force)')
end
