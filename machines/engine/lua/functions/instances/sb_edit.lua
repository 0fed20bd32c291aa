-- needs: arguments, repairs, replies
-- sb_edit: a repair: changes data, each field by its declared type. A step of its own, without a transition.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 data to change (JSON object, null unsets) · 3 expect (revision or '') · 4 actor · 5 reason (required)
--          · 6 now (ms since the epoch, or '') · 7 idempotency key or '' · 8 'dry' for a preview, or ''
--          · 9 permit (as sb_fire)
-- Returns: {OK, '', replayed 0|1, instance JSON}, or {OK, preview JSON} · {CONFLICT, revision} · {NOINSTANCE} · {NOMACHINE}
--          · {APPROVAL, ...} as sb_fire
--          · {BADPAYLOAD, why, field} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    O(fields of the instance)
return function(KEYS, ARGV)
    local call, data = repairs.parse_call(ARGV, 3), ARGV[2] or ''
    arguments.need(ARGV[1], 'the id is missing')
    arguments.need(string.find(data, '%S') and not string.find(data, '^%s*{%s*}%s*$'), 'no data field is named')
    local ctx = repairs.open(KEYS[1], call)
    local why, field = repairs.patch_data(ctx, data)
    if why then return { replies.BAD_PAYLOAD, why, field } end
    return repairs.finish(ctx, call, '(edit)')
end
