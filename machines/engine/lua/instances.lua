-- needs: keys, program, core, replies
-- Reading one instance into a context the core can step.
local instances = {}

local call = redis.call

-- The instance's hash, and its key; nil where there is none.
function instances.read(root, id)
    local key = keys.instance(root, id)
    local flat = call('HGETALL', key)
    local count = #flat
    if count == 0 then return nil end
    local raw = {}
    for i = 1, count, 2 do raw[flat[i]] = flat[i + 1] end
    return raw, key
end

-- The program of the machine's current version; nil and a reply where there is none.
function instances.current(root, version)
    local field = version ~= '' and 'def:' .. version or 'current'
    local def = redis.call('HGET', keys.meta(root), field)
    if not def then return nil, { replies.NO_MACHINE } end
    local compiled, why = program.load(root, def)
    if not compiled then return nil, { replies.FAULT, why } end
    return compiled
end

-- The reply for an instance that is not there: unknown itself, or its whole machine.
function instances.missing(root)
    local known = redis.call('EXISTS', keys.meta(root)) == 1
    return { known and replies.NO_INSTANCE or replies.NO_MACHINE }
end

-- A context for the instance; nil and a reply where there is none.
function instances.open(root, id, now)
    local raw, key = instances.read(root, id)
    if not raw then return nil, instances.missing(root) end
    if not raw._def or not raw._version or not raw._state then
        return nil, { replies.FAULT, 'the key of instance ' .. id .. ' was not written by the engine' }
    end
    local compiled, why = program.load(root, raw._def)
    if not compiled then return nil, { replies.FAULT, why } end
    local ctx = core.context(compiled, id, raw, now)
    if not ctx then
        local where = string.gsub(raw._state, '\n', ', ')
        return nil, { replies.FAULT, 'instance ' .. id .. ' is in ' .. where .. ', which its definition does not have' }
    end
    ctx.key = key
    return ctx
end

-- A second context on the same, untouched instance: for explanations after a failed step.
function instances.again(ctx)
    local raw, key = instances.read(ctx.program.root, ctx.id)
    local again = core.context(ctx.program, ctx.id, raw, ctx.now)
    again.key = key
    return again
end

return instances
