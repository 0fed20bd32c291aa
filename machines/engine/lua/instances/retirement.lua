-- needs: chart, data_indexes, deletion, failures, instances, jobs, keys, programs, version_counters
-- Removes finished instances, many in one call. Those of a flat machine are read by the few fields that matter, and share
-- their ZREM and DEL; all others are deleted one by one.
local retirement = {}

local call, pcall_redis = redis.call, redis.pcall
local MEMBERS = 100 -- of one command

-- Starts a call on a partition. `has_failures`: whether any instance of it has one.
function retirement.start(root)
    local has_failures = call('EXISTS', keys.wrong(root)) == 1
    return { root = root, programs = {}, last = nil, members = {}, doomed = {}, has_failures = has_failures,
        versions = {} }
end

local function matches(row, revision, created)
    return row._version == revision and row._created == created and not row._suspended
end

local function flush_members(key, ids)
    for from = 1, #ids, MEMBERS do
        pcall_redis('ZREM', key, unpack(ids, from, math.min(from + MEMBERS - 1, #ids)))
    end
end

local FIELDS = { '_def', '_version', '_created', '_state', '_suspended', '_parent', '_timers', '_jobs', '_actor',
    '_came' }

-- Answers the program that an instance names and the fields that its removal reads; false where it cannot be read.
local function load_program(batch, def)
    local found = batch.programs[def]
    if found ~= nil then return found end
    local ok, program = pcall(programs.load, batch.root, def)
    found = false
    if ok and program then
        local names = { unpack(FIELDS) }
        for i, field in ipairs(program.indexed or {}) do names[#FIELDS + i] = field.name end
        found = { program = program, names = names }
    end
    batch.programs[def], batch.last = found, found or batch.last
    return found
end

-- Reads the fields of an instance; guesses that it has the program of the one before.
local function read_row(batch, key)
    local guess = batch.last
    local row = pcall_redis('HMGET', key, unpack(guess and guess.names or FIELDS))
    if row.err or not row[1] then return nil end
    local known = load_program(batch, row[1])
    if known and known ~= guess then row = pcall_redis('HMGET', key, unpack(known.names)) end
    return known and row or nil, known and known.program
end

-- Makes the part of a flat instance's context that its deletion reads; nil for any other instance.
local function read_flat(batch, id)
    local key = keys.instance(batch.root, id)
    local row, program = read_row(batch, key)
    if not row or not program.flat or row[6] or row[7] then return nil end
    local raw = { _def = row[1], _version = row[2], _created = row[3], _suspended = row[5], _jobs = row[8] or '',
        _actor = row[9] or nil, _came = row[10] or nil }
    return { program = program, id = id, raw = raw, key = key, state = program.index[row[4]], row = row }
end

local function remove_flat(batch, ctx)
    local program, id, root, members = ctx.program, ctx.id, batch.root, batch.members
    if program.indexed or program.facts then
        local was = { unpack(ctx.row, #FIELDS + 1, #FIELDS + #(program.indexed or {})) }
        data_indexes.collect(program, id, ctx.raw, was, members)
    end
    if ctx.raw._jobs ~= '' then
        for job in string.gmatch(ctx.raw._jobs, '%S+') do jobs.remove(root, job, 'withdrawn') end
    end
    if batch.has_failures then failures.remove_instance(root, id) end
    local index, doomed = program.states[ctx.state].index_key, batch.doomed
    local listed, at = members[index] or {}, #doomed
    members[index], listed[#listed + 1] = listed, id
    doomed[at + 1], doomed[at + 2], doomed[at + 3] = ctx.key, program.history_prefix .. id, keys.undo(root, id)
end

local function remove_any(batch, id, revision, created)
    local ok, ctx = pcall(instances.open, batch.root, id, 0)
    if not ok or not ctx or not matches(ctx.raw, revision, created) then return nil end
    if not chart.is_finished(ctx) then return nil end
    return pcall(deletion.remove, ctx, false) and ctx or nil
end

-- Removes an instance if it is finished and still of this revision and creation. Answers the machine's name, or nil where
-- the instance stays. The keys of flat instances go when the batch is finished.
function retirement.remove(batch, id, revision, created)
    local ctx = read_flat(batch, id)
    if ctx then
        if not ctx.state or not ctx.program.states[ctx.state].final or not matches(ctx.raw, revision, created) then
            return nil
        end
        remove_flat(batch, ctx)
    else
        ctx = remove_any(batch, id, revision, created)
    end
    if not ctx then return nil end
    local version = ctx.program.version
    batch.versions[version] = (batch.versions[version] or 0) + 1
    return ctx.program.machine
end

-- Removes the keys of the batch.
function retirement.finish(batch)
    for version, count in pairs(batch.versions) do version_counters.remove(batch.root, version, count) end
    for key, ids in pairs(batch.members) do flush_members(key, ids) end
    local doomed = batch.doomed
    for from = 1, #doomed, MEMBERS do call('UNLINK', unpack(doomed, from, math.min(from + MEMBERS - 1, #doomed))) end
end

return retirement
