-- needs: arguments, chart, keys, live_figures, previews, repairs, replies, timers
-- sb_suspend: suspends an instance: until it is resumed no event reaches it and no timer fires. Messages wait in order.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 expect (revision or '') · 3 actor · 4 reason (required) · 5 now (ms since the epoch, or '')
--          · 6 'dry' for a preview, which needs no reason, or '' · 7 permit (as sb_fire)
-- Returns: {OK, '', '0', instance JSON}, or {OK, preview JSON} · {CONFLICT, revision} · {NOINSTANCE}
--          · {APPROVAL, ...} as sb_fire · {NOMACHINE} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse
-- Cost:    O(timers of the instance)
return function(KEYS, ARGV)
    local root, call = KEYS[1], repairs.parse_hold(ARGV, 6)
    local ctx, dry = repairs.open(root, call), call.dry ~= ''
    if ctx.raw._suspended then return dry and previews.build_reply(ctx) or replies.build_instance(ctx) end
    arguments.need(not chart.is_finished(ctx), 'the instance is final: there is nothing to suspend')
    if dry then return previews.build_reply(ctx) end
    ctx.raw._suspended, ctx.changed_meta._suspended = string.format('%.0f', ctx.now), true
    redis.call('ZCARD', keys.timers(root)) -- throws before any write when a key has another type
    redis.call('ZCARD', keys.late(root))
    local reply = repairs.finish(ctx, call, '(suspend)')
    if reply[1] ~= replies.OK then return reply end
    live_figures.forget_suspended()
    for _, timer in ipairs(timers.read_list(ctx)) do timers.unschedule(root, ctx.id, timer[1]) end
    return reply
end
