-- needs: arguments, commit, keys, repairs
-- sb_pin:  pins an instance to its version, so that no plan moves it; or unpins it. A step in its history.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 '1' to pin, '0' to unpin · 3 expect (revision or '') · 4 actor · 5 reason (required) · 6 now (ms since
--          the epoch, or '') · 7 idempotency key or '' · 8 'dry' for a preview, which needs no reason, or '' · 9 permit
--          (as sb_fire)
-- Returns: {OK, '', '0', instance JSON}, or {OK, preview JSON} · {CONFLICT, revision} · {NOINSTANCE} · {APPROVAL, ...} as
--          sb_fire · {NOMACHINE} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse
-- Cost:    O(fields of the instance)
return function(KEYS, ARGV)
    local root, pinned = KEYS[1], ARGV[2]
    arguments.need(pinned == '1' or pinned == '0', "'1' pins, '0' unpins")
    local call = repairs.parse_call(ARGV, 3)
    local ctx = repairs.open(root, call)
    -- A pin that is there already is no step.
    if (ctx.raw._pin ~= nil) == (pinned == '1') and call.dry == '' then return repairs.store_reply(ctx, call) end
    ctx.raw._pin, ctx.changed_meta._pin = pinned == '1' and '1' or nil, true
    return repairs.finish(ctx, call, pinned == '1' and '(pin)' or '(unpin)')
end
