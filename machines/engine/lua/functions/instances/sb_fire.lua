-- needs: arguments, compiled_steps, idempotency, instances, keys, payloads, permits, pulse, replies, reserved_events
-- needs: steps, traces, version_counters
-- sb_fire: sends one event to one instance and commits the macrostep it causes.
-- KEYS:    1 root of the partition, for example sb:{activation:0}
-- ARGV:    1 id · 2 event · 3 payload (JSON object or '') · 4 expect (revision or '') · 5 idempotency key or '' · 6 actor ·
--          7 reason · 8 now (ms since the epoch, or '' for the server's clock) · 9 permit: what the person behind the call
--          may do, {"groups": [names] or null for any, "approved": {"action", "by", optionally "definition", a version, and
--          "transitions", ids}}; '' or left out for a program, to which no rule for people applies · 10 'version' for the
--          revision in place of the instance; '' or left out for the instance, which a call with a key always gets
--          · 11 W3C traceparent: jobs and messages of the step go on with that trace; '' or left out for none
-- Returns: {OK, transition ids, replayed 0|1, instance JSON or revision, '1' where it sent messages, with a permit or a trace
--          the states before, a line each} · {REFUSED, explanation JSON} · {CONFLICT, revision} · {SUSPENDED, since ms} ·
--          {NOTALLOWED, event, transition id, its target, its groups (JSON)} · {APPROVAL, action, id, version,
--          definition version, transition ids, approved ones or ''}: needs the approval of a second person ·
--          {NOINSTANCE} · {NOMACHINE} · {BADPAYLOAD, why, field} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    O(fields of the instance + log(instances in the state)); about eight commands inside one call; two counters for
--          a refusal
local function count_refusal(root, program, event, clock)
    -- Callers may invent any number of names: events that the definition does not know are counted together.
    redis.pcall('HINCRBY', keys.refused(root), program.known[event] and event or '', 1)
    version_counters.count(root, program.version, 'refused')
    pulse.touch(root, clock)
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    local id, event, payload_text = ARGV[1], ARGV[2], ARGV[3] or ''
    local expect, key = ARGV[4] or '', ARGV[5] or ''
    local actor, reason = ARGV[6] or '', ARGV[7] or ''
    local now, clock = arguments.read_now(ARGV[8])
    local bad = arguments.check_event(event)
    -- Most calls have none of these arguments and pay only for these comparisons.
    if bad or not now or expect ~= '' or key ~= '' or actor ~= '' or reason ~= '' then
        bad = bad or arguments.check(expect, key, actor, reason, ARGV[8] or '')
    end
    if bad then arguments.refuse(bad) end
    if key ~= '' then
        local first = idempotency.find(root, id, key)
        if first then return first end
    end
    local permit, returning = ARGV[9], ARGV[10] or ''
    if permit == '' then permit = nil end
    arguments.need(returning == '' or returning == 'version', "what a step returns is '' or 'version'")
    if ARGV[11] then traces.begin(ARGV[11]) end
    local short = returning ~= '' and key == '' -- the outcome that a key keeps is whole
    local instance_key = keys.instance(root, id)
    local flat = redis.call('HGETALL', instance_key)
    local reply, program = compiled_steps.fire(root, id, instance_key, flat, event, payload_text, expect, actor, reason, now,
        clock, permit, short)
    if reply then
        if reply[1] == replies.REFUSED then
            count_refusal(root, program, event, clock)
        elseif key ~= '' and reply[1] == replies.OK then
            idempotency.store(keys.outcome(root, id, key), reply)
        end
        return reply
    end
    local ctx, missing = instances.open_read(root, id, instance_key, flat, now)
    if not ctx then return missing end
    if expect ~= '' and tonumber(expect) ~= ctx.revision then return { replies.CONFLICT, ctx.raw._version } end
    if ctx.raw._suspended then return { replies.SUSPENDED, ctx.raw._suspended } end
    if not ctx.program.known[event] and reserved_events.is_reserved(event) then
        return { replies.BAD_ARGUMENT, reserved_events.describe(event) }
    end
    local payload, history_payload = payloads.parse(payload_text)
    local why, field = history_payload, nil
    if payload then why, field = payloads.find_misfit(ctx.program, event, payload) end
    if why then return { replies.BAD_PAYLOAD, why, field or '' } end
    ctx.short, ctx.before = short, (permit or traces.current) and ctx.raw._state
    if permit then arguments.refuse(permits.read(ctx, permit, actor)) end
    reply = steps.fire(ctx, event, payload, actor, reason, history_payload, clock)
    if reply[1] == replies.REFUSED then
        count_refusal(root, ctx.program, event, clock)
    elseif key ~= '' and reply[1] == replies.OK then
        idempotency.store(keys.outcome(root, id, key), reply)
    end
    return reply
end
