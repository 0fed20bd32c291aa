-- needs: arguments, commit, data_indexes, keys, programs, queue_limits, replies, values
-- sb_publish: stores a compiled definition as a numbered, immutable version and makes it the current one.
-- KEYS:    1 root of the partition
-- ARGV:    1 digest of the program (hex) · 2 program (JSON) · 3 source definition (JSON) · 4 secret (hex) · 5 partitions · 6
--          version ('' = the next one; the number of an earlier publication for another partition or a restore)
-- Returns: {OK, version, '1' new or '0' published before} · {CONFLICT, version} the number has another content · {BADARG,
--          why}
-- Notifies: <root>:pulse
-- Cost:    O(size of the program)
local MAX_VERSION, MAX_PARTITIONS = 1e9, 65536

-- Checked before any write: each of these becomes part of a key or a field.
local function check_row(row, version, root)
    local bad = arguments.check_root(root)
    if bad then return bad end
    if not string.find(row.digest or '', '^%x+$') or #row.digest > 64 then return 'a digest is hex' end
    if not row.program or not row.source or not row.secret then return 'program, source and secret are needed' end
    if not arguments.parse_count(row.partitions, 1, MAX_PARTITIONS) then return 'partitions are 1 to ' .. MAX_PARTITIONS end
    if version ~= '' and not arguments.parse_count(version, 1, MAX_VERSION) then
        return 'a version is a whole number from 1'
    end
    return nil
end

local function check_program(source, root)
    local ok, caught = pcall(programs.check_work, source, root)
    if ok then return nil end
    -- A definition that passed the checks always compiles, so another program wrote this one.
    local why = type(caught) == 'table' and values.describe_error(caught) or string.match(tostring(caught), 'definition: (.*)$')
    return 'the program is not what a definition compiles to' .. (why and ': ' .. why or '')
end

local function store(root, def, version, row)
    redis.call('HSET', keys.definition(root, version), 'program', row.program, 'source', row.source,
        'digest', row.digest, 'secret', row.secret)
    redis.call('HSET', keys.meta(root), 'current', def, 'def:' .. version, def, 'partitions', row.partitions)
    local newest = tonumber(redis.call('HGET', keys.meta(root), 'newest') or 0)
    if version > newest then redis.call('HSET', keys.meta(root), 'newest', version) end
end

-- Throws before any write when a key has another type.
local function check_keys(root, version, source)
    redis.call('HLEN', keys.definition(root, version))
    redis.call('SCARD', keys.states(root))
    redis.call('SCARD', keys.queues(root))
    for _, queue in ipairs(source.queues or {}) do redis.call('HLEN', keys.rules(root, queue)) end
    for _, field in ipairs(source.index or {}) do redis.call('ZCARD', keys.lookup(root, field)) end
end

local function store_names(root, source)
    for _, state in ipairs(source.states) do
        if not state.kind then redis.call('SADD', keys.states(root), state.name) end
    end
    for _, queue in ipairs(source.queues or {}) do redis.call('SADD', keys.queues(root), queue) end
end

-- A field that any version has declared stays indexed, for the instances of all versions.
local function store_indexes(root, source)
    local listed, empty = data_indexes.read_list(root), (tonumber(redis.call('HGET', keys.meta(root), 'instances')) or 0) == 0
    local extended = data_indexes.extend_list(listed, source.index or {}, empty)
    if extended ~= listed then redis.call('HSET', keys.meta(root), 'by', extended) end
    programs.drop_outdated(root)
end

-- A field that any version has marked as sensitive is sensitive in the instances of all versions.
local function store_sensitive(root, marked)
    if not marked then return end
    local held = cjson.decode(redis.call('HGET', keys.meta(root), 'sensitive') or '{"data":{},"events":{}}')
    for field in pairs(marked.data or {}) do held.data[field] = 1 end
    for event, fields in pairs(marked.events or {}) do
        held.events[event] = held.events[event] or {}
        for field in pairs(fields) do held.events[event][field] = 1 end
    end
    redis.call('HSET', keys.meta(root), 'sensitive', cjson.encode(held))
end

-- A published version decides with `accepts` who may send; without it only a machine that existed before keeps its grants.
local function close_grants(root, source, is_known)
    if source.accepts or not is_known then redis.call('HSET', keys.meta(root), 'granted', '') end
end

-- The limits of the current version apply to all queues, also those that only earlier versions use.
local function store_limits(root, source, partitions)
    local declared = source.limits or {}
    for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do
        queue_limits.declare(root, queue, declared[queue], partitions)
    end
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    local row = { digest = ARGV[1], program = ARGV[2], source = ARGV[3], secret = ARGV[4], partitions = ARGV[5] }
    local bad = check_row(row, ARGV[6] or '', root)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local wanted = tonumber(ARGV[6] or '')
    local meta = redis.call('HMGET', keys.meta(root), 'current', 'newest')
    local current = meta[1] or ''
    if not wanted and string.match(current, ':(%x+)$') == row.digest then
        return { replies.OK, string.match(current, '^%d+'), '0' }
    end
    local version = wanted or tonumber(meta[2] or 0) + 1
    local def = version .. ':' .. row.digest
    local there = redis.call('HGET', keys.meta(root), 'def:' .. version)
    if there and there ~= def then return { replies.CONFLICT, tostring(version) } end
    local ok, source = pcall(cjson.decode, row.program)
    local why = not ok and 'the program is not JSON' or check_program(source, root)
    if why then return { replies.BAD_ARGUMENT, why } end
    if there then
        redis.call('HSET', keys.meta(root), 'current', def)
        close_grants(root, source, true)
        store_limits(root, source, tonumber(row.partitions))
        return { replies.OK, tostring(version), '0' }
    end
    check_keys(root, version, source)
    store(root, def, version, row)
    store_names(root, source)
    store_indexes(root, source)
    store_sensitive(root, source.sensitive)
    close_grants(root, source, meta[1])
    store_limits(root, source, tonumber(row.partitions))
    commit.ring_pulse(root)
    return { replies.OK, tostring(version), '1' }
end
