-- needs: arguments, commit, core, fields, instances, json, keys, outcomes, replies, texts, values
-- sb_create: makes an instance of a published version and takes its first macrostep.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 data (JSON object or '') · 3 version ('' = the current one) · 4 idempotency key or '' · 5 actor
--          · 6 reason · 7 now (ms since the epoch, or '')
-- Returns: {OK, transition ids, replayed 0|1, instance JSON} · {EXISTS} · {NOMACHINE} · {BADPAYLOAD, why, field}
--          · {BADARG, why} · {REFUSED, explanation JSON} · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    O(declared fields + log(instances in the state))
local MAX_ID, MAX_DATA = 200, 65536

local function bad_id(id)
    if not id or #id == 0 or #id > MAX_ID then return 'an instance id has 1 to ' .. MAX_ID .. ' bytes' end
    if string.find(id, '%c') then return 'an instance id has no control characters' end
    if not string.find(id, '%S') then return 'an instance id is not only spaces' end
    if not texts.valid(id) then return 'an instance id is UTF-8' end
    return nil
end

-- Declared initial values, then the caller's.
local function fill(ctx, data)
    for _, field in ipairs(ctx.program.ordered) do
        if field.initial then
            fields.put(ctx, field, field.initial)
        end
    end
    for name, value in pairs(data) do
        local field = ctx.program.fields[name]
        if not field then return "machine '" .. ctx.program.machine .. "' declares no data field '" .. name .. "'", name end
        local ok, caught = pcall(fields.write, ctx, field, values.plain(value))
        if not ok then return values.message(caught), name end
    end
    return nil
end

local function parse(text)
    if text == '' then return {} end
    if #text > MAX_DATA then return nil, 'the data has ' .. #text .. ' bytes; ' .. MAX_DATA .. ' are allowed' end
    local ok, data = pcall(json.decode, text)
    if not ok then return nil, values.message(data) end
    if values.kind(data) ~= 'object' then return nil, 'data is a JSON object, not ' .. values.kind(data) end
    return data
end

local function born(compiled, id, now)
    local raw = { _version = '0', _def = compiled.def, _created = now }
    local ctx = core.context(compiled, id, raw, now)
    ctx.key = keys.instance(compiled.root, id)
    return ctx
end

local function refused(ctx, failure)
    return { replies.REFUSED, json.encode({
        event = '(create)', state = json.list(), version = 0, taken = false, why = 'error', error = failure,
        candidates = json.list(), known = ctx.program.known_list, outcome = json.null,
    }) }
end

local function settle(ctx, data)
    local why, field = fill(ctx, data)
    if why then return { replies.BAD_PAYLOAD, why, field } end
    local ok, failure = core.start(ctx)
    if ok then ok, failure = pcall(commit.prepare, ctx) end
    if not ok then return refused(ctx, type(failure) == 'string' and failure or values.message(failure)) end
    return nil
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    local id, data_text, version, key = ARGV[1], ARGV[2] or '', ARGV[3] or '', ARGV[4] or ''
    local actor, reason = ARGV[5] or '', ARGV[6] or ''
    local bad = bad_id(id) or arguments.misfit(version, key, actor, reason, ARGV[7] or '')
    if bad then return { replies.BAD_ARGUMENT, bad } end
    -- Before anything else: a call that comes twice must not bring back what was deleted in between.
    local first = key ~= '' and outcomes.recall(keys.creation(root, id, key))
    if first then return first end
    if redis.call('EXISTS', keys.instance(root, id)) == 1 then return { replies.EXISTS } end
    local compiled, missing = instances.current(root, version)
    if not compiled then return missing end
    local data, why = parse(data_text)
    if not data then return { replies.BAD_PAYLOAD, why, '' } end
    local ctx = born(compiled, id, arguments.now(ARGV[7]))
    local problem = settle(ctx, data)
    if problem then return problem end
    ctx.born = true
    local ok, fault = commit.step(ctx, '(create)', actor, reason, '0')
    if not ok then return { replies.FAULT, fault } end
    local reply = replies.instance(ctx)
    if key ~= '' then outcomes.keep(keys.creation(root, id, key), reply) end
    return reply
end
