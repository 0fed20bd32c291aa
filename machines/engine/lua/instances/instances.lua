-- needs: core, keys, programs, replies
-- Reading one instance into a context the core can step.
local instances = {}

local call, pcall_redis, unpack, sub, concat = redis.call, redis.pcall, unpack, string.sub, table.concat

local MOST_COLUMNS = 4000 -- of one command: Lua's stack holds 8000 values

-- The program of the instance whose data was read last: most likely that of the next one, too.
local likely

-- What data is put together of, filled anew for each instance.
local parts = {}

-- The instance's hash, and its key; nil where there is none.
function instances.read(root, id)
    local key = keys.instance(root, id)
    local flat = call('HGETALL', key)
    local count = #flat
    if count == 0 then return nil end
    local raw = { _version = nil, _state = nil, _entered = nil, _def = nil, _created = nil, _jobs = nil } -- room for all
    for i = 1, count, 2 do raw[flat[i]] = flat[i + 1] end
    return raw, key
end

-- The program of the machine's current version; nil and a reply where there is none.
function instances.current(root, version)
    local field = version ~= '' and 'def:' .. version or 'current'
    local def = redis.call('HGET', keys.meta(root), field)
    if not def then return nil, { replies.NO_MACHINE } end
    local compiled, why = programs.load(root, def)
    if not compiled then return nil, { replies.FAULT, why } end
    return compiled
end

-- A server that led, followed and leads again has missed what was published meanwhile.
instances.refresh = programs.drop_outdated

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
    local compiled, why = programs.load(root, raw._def)
    if not compiled then return nil, { replies.FAULT, why } end
    local ctx = core.context(compiled, id, raw, now)
    if not ctx then
        local where = string.gsub(raw._state, '\n', ', ')
        return nil, { replies.FAULT, 'instance ' .. id .. ' is in ' .. where .. ', which its definition does not have' }
    end
    ctx.key = key
    return ctx
end

-- Some fields of the instance's hash, by number; nil where it cannot be read.
local function columns(key, names)
    local row = pcall_redis('HMGET', key, unpack(names, 1, math.min(#names, MOST_COLUMNS)))
    for from = MOST_COLUMNS + 1, #names, MOST_COLUMNS do
        local more = row.err and row or pcall_redis('HMGET', key, unpack(names, from, math.min(from + MOST_COLUMNS - 1, #names)))
        if more.err then return nil end
        for i = 1, #more do row[from + i - 1] = more[i] end
    end
    return not row.err and row or nil
end

local ONLY_DEF = { '_def' }

-- The definition an instance names and its data as JSON; two empty texts where it cannot be read. Never fails.
function instances.data(root, id)
    local key = keys.instance(root, id)
    local compiled = likely and likely.root == root and likely or nil
    local row = columns(key, compiled and compiled.columns or ONLY_DEF)
    if not row or not row[1] then return '', '' end
    if not compiled or compiled.def ~= row[1] then
        local ok, found = pcall(programs.load, root, row[1])
        if not ok or not found then return '', '' end
        compiled, likely, row = found, found, columns(key, found.columns)
        if not row then return '', '' end
    end
    local ordered, count = compiled.ordered, 0
    for i = 1, #ordered do
        local field, value = ordered[i], row[i + 1]
        if value then
            parts[count + 1], parts[count + 2] = field.quoted, field.plain and value or field.as_json(value)
            count = count + 2
        end
    end
    return compiled.def, '{' .. sub(concat(parts, '', 1, count), 2) .. '}'
end

-- A second context on the same, untouched instance: for explanations after a failed step.
function instances.again(ctx)
    local raw, key = instances.read(ctx.program.root, ctx.id)
    local again = core.context(ctx.program, ctx.id, raw, ctx.now)
    again.key = key
    return again
end

return instances
