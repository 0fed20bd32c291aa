-- needs: arguments, creation, idempotency, instances, keys, redirects, replies, traces, version_counters
-- sb_create: creates an instance of a published version and takes its first macrostep.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 data (JSON object or '') · 3 version ('' = the one that its id gets) · 4 idempotency key or '' · 5 actor
--          · 6 reason · 7 now (ms since the epoch, or '') · 8 W3C traceparent: jobs and messages of the step go on with that
--          trace; '' or left out for none
-- Returns: {OK, transition ids, replayed 0|1, instance JSON} · {EXISTS} · {NOMACHINE} · {BADPAYLOAD, why, field}
--          · {BADARG, why} · {REFUSED, explanation JSON} · {VERSIONS, code, why} the version is withdrawn
--          · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    O(declared fields + log(instances in the state))
return function(KEYS, ARGV)
    local root = KEYS[1]
    local id, data_text, version, key = ARGV[1], ARGV[2] or '', ARGV[3] or '', ARGV[4] or ''
    local actor, reason = ARGV[5] or '', ARGV[6] or ''
    arguments.refuse(creation.check_id(id) or arguments.check(version, key, actor, reason, ARGV[7] or ''))
    -- First of all, so that a repeated call does not create an instance again that was deleted meanwhile.
    local first = key ~= '' and idempotency.read(keys.creation(root, id, key))
    if first then return first end
    if redis.call('EXISTS', keys.instance(root, id)) == 1 then return { replies.EXISTS } end
    local elsewhere = redirects.build(root, id)
    if elsewhere then return elsewhere end
    local compiled, missing = instances.load_current(root, version, id)
    if not compiled then return missing end
    local data, why = creation.parse_data(data_text)
    if not data then return { replies.BAD_PAYLOAD, why, '' } end
    if ARGV[8] then traces.begin(ARGV[8]) end
    local now, clock = arguments.read_now(ARGV[7])
    local reply = creation.create(compiled, id, data, now, actor, reason, nil, clock)
    if reply[1] == replies.REFUSED then version_counters.count(root, compiled.version, 'refused') end
    if key ~= '' and reply[1] == replies.OK then idempotency.store(keys.creation(root, id, key), reply) end
    return reply
end
