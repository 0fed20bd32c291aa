-- needs: arguments, delivery, due_times, instances, keys, live_figures, previews, repairs, replies, time_limit
-- needs: timers
-- sb_resume: resumes a suspended instance: its timers run again, and the messages that waited are applied in order.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 expect (revision or '') · 3 actor · 4 reason (required) · 5 now (ms since the epoch, or '') · 6 policy
--          for timers: 'fire' (they keep their time, overdue ones fire at once) or 'shift' (each is moved by the time the
--          instance was suspended) · 7 'dry' for a preview, which needs no reason, or '' · 8 permit (as sb_fire)
-- Returns: {OK, '', '0', instance JSON}, or {OK, preview JSON} · {CONFLICT, revision} · {NOINSTANCE}
--          · {APPROVAL, ...} as sb_fire · {NOMACHINE} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse
-- Cost:    O(timers of the instance), and as sb_fire for each message that waited


-- Applies the waiting messages in order. The first that cannot be written now, or not in time, and all behind it go to the
-- outbox of this partition. Skips anything that is no message: another program wrote it, and it must not block the others.
local function apply_waiting(ctx, waiting)
    local root, stuck, over = ctx.program.root, false, time_limit.start()
    for _, text in ipairs(waiting) do
        local ok, message = pcall(cjson.decode, text)
        local body = ok and type(message) == 'table' and delivery.check_body(message.kind, message.body)
        if body then
            local outcome, why = 'fault', nil
            message.machine, message.id, body.forwarded = ctx.program.machine, ctx.id, true
            if over() then stuck = true end
            if not stuck then outcome, why = delivery.try_apply(root, message.kind, ctx.id, body, ctx.now) end
            if outcome == 'fault' then
                stuck = true
                delivery.post(root, message.kind, message.machine, message.id, body)
            elseif outcome == 'failed' then
                delivery.bounce(root, message, why, ctx.now)
            end
        end
    end
end

return function(KEYS, ARGV)
    local root, id, policy, call = KEYS[1], ARGV[1], ARGV[6] or 'fire', repairs.parse_hold(ARGV, 7)
    arguments.need(policy == 'fire' or policy == 'shift', "overdue timers are to 'fire' or 'shift'")
    local ctx, dry = repairs.open(root, call), call.dry ~= ''
    local since, now = ctx.raw._suspended, ctx.now
    if not since then return dry and previews.build_reply(ctx) or replies.build_instance(ctx) end
    ctx.raw._suspended, ctx.changed_meta._suspended = nil, true
    timers.resume(ctx, tonumber(since), policy == 'shift')
    if dry then
        ctx.held = redis.call('LLEN', keys.held(root, id))
        return previews.build_reply(ctx)
    end
    redis.call('ZCARD', keys.timers(root))
    redis.call('XLEN', keys.outbox(root))
    redis.call('LLEN', keys.held(root, id))
    local reply = repairs.finish(ctx, call, '(resume)')
    if reply[1] ~= replies.OK then return reply end
    live_figures.forget_suspended()
    for _, timer in ipairs(timers.read_list(ctx)) do timers.schedule(root, id, timer[1], timer[2], now) end
    local waiting = redis.call('LRANGE', keys.held(root, id), 0, -1)
    if not waiting[1] then
        due_times.ring_bell(root)
        return reply
    end
    redis.call('DEL', keys.held(root, id))
    apply_waiting(ctx, waiting)
    local after = instances.open(root, id, now)
    reply = replies.build_instance(after or ctx)
    reply[5] = '1'
    due_times.ring_bell(root)
    return reply
end
