-- needs: arguments, instances, payloads, replies, reserved_events, steps
-- sb_explain: explains what sb_fire would do with an event, and why; the same code without the commit.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 event · 3 payload (JSON object or '') · 4 now (ms since the epoch, or '')
-- Returns: {OK, explanation JSON} · {SUSPENDED, since ms} · {NOINSTANCE} · {NOMACHINE} · {BADPAYLOAD, why, field}
--          · {BADARG, why} · {FAULT, why}
-- Notifies: nothing
-- Cost:    O(fields of the instance + candidate transitions)
return function(KEYS, ARGV)
    local id, event, payload_text, now = ARGV[1], ARGV[2], ARGV[3] or '', ARGV[4] or ''
    arguments.refuse(arguments.check_event(event) or reserved_events.is_reserved(event) and reserved_events.describe(event))
    local root, at = KEYS[1], (arguments.need_now(now))
    local ctx, missing = instances.open(root, id, at)
    if not ctx then return missing end
    if ctx.raw._suspended then return { replies.SUSPENDED, ctx.raw._suspended } end
    local payload, why = payloads.parse(payload_text)
    local field
    if payload then why, field = payloads.find_misfit(ctx.program, event, payload) end
    if why then return { replies.BAD_PAYLOAD, why, field or '' } end
    return steps.explain(ctx, event, payload)
end
