-- needs: chart, keys, lua_source, programs, redirects, replies, version_policy
-- Reads an instance into a context that the interpreter can step.
local instances = {}

local call, pcall_redis, unpack, concat, format = redis.call, redis.pcall, unpack, table.concat, string.format

local MAX_FIELDS = 4000 -- fields in one command: Lua's stack holds 8000 values
local MAX_WRITTEN = 40 -- fields of a written reader: a function of Lua has at most 250 registers

-- The program of the instance whose data was read last, which has the reader: most likely the next one's, too.
local last_program

-- Makes the hash of what HGETALL answered; nil when there is none.
local function make_hash(flat)
    local count = #flat
    if count == 0 then return nil end
    -- preallocates the table
    local raw = { _version = nil, _state = nil, _entered = nil, _def = nil, _created = nil, _jobs = nil }
    for i = 1, count, 2 do raw[flat[i]] = flat[i + 1] end
    return raw
end

-- Reads the instance's hash; answers it and its key, nil when there is none.
function instances.read(root, id)
    local key = keys.instance(root, id)
    return make_hash(call('HGETALL', key)), key
end

-- Loads the program for a new instance, of a version or of the one that its id gets; nil and a reply when there is none.
function instances.load_current(root, version, id)
    local def, missing = version_policy.find_definition(root, version, id)
    if not def then return nil, missing end
    local compiled, why = programs.load(root, def)
    if not compiled then return nil, { replies.FAULT, why } end
    return compiled
end

-- A server that led, followed and leads again has missed what was published meanwhile.
instances.drop_outdated_programs = programs.drop_outdated

-- Builds the reply for a missing instance: it may be in another partition, or its machine is missing.
function instances.build_missing(root, id)
    local elsewhere = redirects.build(root, id)
    if elsewhere then return elsewhere end
    local is_published = redis.call('EXISTS', keys.meta(root)) == 1
    return { is_published and replies.NO_INSTANCE or replies.NO_MACHINE }
end

-- Makes a context for an instance whose hash was read; nil and a reply when it cannot be stepped.
local function make_context(root, id, raw, key, now)
    if not raw._def or not raw._version or not raw._state then
        return nil, { replies.FAULT, 'the key of instance ' .. id .. ' was not written by the engine' }
    end
    local compiled, why = programs.load(root, raw._def)
    if not compiled then return nil, { replies.FAULT, why } end
    local ctx = chart.context(compiled, id, raw, now)
    if not ctx then
        local where = string.gsub(raw._state, '\n', ', ')
        return nil, { replies.FAULT, 'instance ' .. id .. ' is in ' .. where .. ', which its definition does not have' }
    end
    ctx.key = key
    return ctx
end
instances.make_context = make_context

-- The same of what the caller has read: `flat` is the answer of HGETALL.
function instances.open_read(root, id, key, flat, now)
    local raw = make_hash(flat)
    if not raw then return nil, instances.build_missing(root, id) end
    local ctx, missing = make_context(root, id, raw, key, now)
    if ctx then ctx.flat = flat end
    return ctx, missing
end

-- Makes a context for the instance; nil and a reply when there is none.
function instances.open(root, id, now)
    local raw, key = instances.read(root, id)
    if not raw then return nil, instances.build_missing(root, id) end
    return make_context(root, id, raw, key, now)
end

-- The same; ends the call with the reply where there is none, or where its revision is not `expect`.
function instances.demand(root, id, now, expect)
    local ctx, missing = instances.open(root, id, now)
    if not ctx then replies.send(missing) end
    if (expect or '') ~= '' and tonumber(expect) ~= ctx.revision then replies.send({ replies.CONFLICT, ctx.raw._version }) end
    return ctx
end

-- Reads fields of the instance's hash in order; nil when it cannot be read.
local function read_fields(key, names)
    local row = pcall_redis('HMGET', key, unpack(names, 1, math.min(#names, MAX_FIELDS)))
    for from = MAX_FIELDS + 1, #names, MAX_FIELDS do
        local more = row.err and row or pcall_redis('HMGET', key, unpack(names, from, math.min(from + MAX_FIELDS - 1, #names)))
        if more.err then return nil end
        for i = 1, #more do row[from + i - 1] = more[i] end
    end
    return not row.err and row or nil
end

local ONLY_DEF = { '_def' }

-- Makes the function that reads the definition and the data of an instance: nil when it cannot be read. Where no field is
-- missing, it also answers the data as JSON: what is written out for the fields takes half as long.
local function make_reader(program)
    local names, values, tests, count = { '"_def"' }, {}, {}, #program.ordered
    if count == 0 or count > MAX_WRITTEN then return function(key) return read_fields(key, program.columns) end end
    for i, field in ipairs(program.ordered) do
        local value = 'row[' .. i + 1 .. ']'
        tests[i] = value
        names[i + 1] = lua_source.quote(field.name)
        values[i] = lua_source.quote(i == 1 and field.opening or field.quoted) .. ' .. '
            .. (field.plain and value or format('fields[%d].as_json(%s)', i, value))
    end
    return lua_source.load('return function(key) local row = call("HMGET", key, ' .. concat(names, ', ')
        .. ') if row.err then return nil end if not (' .. concat(tests, ' and ') .. ') then return row end return row, '
        .. concat(values, ' .. ') .. ' .. "}" end', { { 'call', pcall_redis }, { 'fields', program.ordered } })
end

-- Answers the definition that an instance names and its data as JSON; two empty texts when it cannot be read. Never throws.
function instances.encode_data(root, id)
    local compiled = last_program
    local row, text
    if compiled and compiled.root == root then
        row, text = compiled.read_data(compiled.instance_prefix .. id)
        if text and row[1] == compiled.def then return row[1], text end
    else
        compiled, row = nil, read_fields(keys.instance(root, id), ONLY_DEF)
    end
    if not row or not row[1] then return '', '' end
    if not compiled or compiled.def ~= row[1] then
        local ok, found = pcall(programs.load, root, row[1])
        if not ok or not found then return '', '' end
        found.read_data = found.read_data or make_reader(found)
        compiled, last_program = found, found
        row, text = found.read_data(found.instance_prefix .. id)
        if not row then return '', '' end
    end
    if text then return compiled.def, text end
    local found = {}
    for i, field in ipairs(compiled.ordered) do
        local value = row[i + 1]
        if value then
            found[#found + 1] = (found[1] and field.quoted or field.opening) .. (field.plain and value or field.as_json(value))
        end
    end
    return compiled.def, found[1] and concat(found) .. '}' or '{}'
end

-- Makes a second context of the same, unchanged instance: for explanations after a failed step.
function instances.reopen(ctx)
    local raw = ctx.flat and make_hash(ctx.flat) or instances.read(ctx.program.root, ctx.id)
    local again = chart.context(ctx.program, ctx.id, raw, ctx.now)
    again.key = ctx.key
    return again
end

return instances
