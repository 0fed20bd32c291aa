-- needs: keys
-- Counters of the versions of a machine in one partition, a hash: `<version>:instances` that exist now, and `created`,
-- `refused`, `dead`, `failed` since the first publication. `mode` tells whether `instances` is right: 'exact', or
-- 'counting' while instances from before the counters are counted one by one; nothing before that begins. A step that is
-- accepted writes none of them.
local version_counters = {}

local call, pcall_redis, match, format = redis.call, redis.pcall, string.match, string.format

version_counters.EXACT, version_counters.COUNTING = 'exact', 'counting'

-- Parses the number in `<version>:<digest>`.
function version_counters.parse_version(def)
    return match(def or '', '^(%d+):')
end

local function read_mode(root)
    return call('HGET', keys.versions(root), 'mode')
end

-- Adds an instance that exists from now on. `is_created`: it was not brought from elsewhere.
function version_counters.add(root, version, id, is_created)
    local key = keys.versions(root)
    if read_mode(root) == version_counters.COUNTING then call('HSET', keys.counted(root), id, version) end
    call('HINCRBY', key, version .. ':instances', 1)
    if is_created then call('HINCRBY', key, version .. ':created', 1) end
end

-- Takes back `add` of a new instance when a later write of the same step failed.
function version_counters.undo(root, version, id)
    local key = keys.versions(root)
    for _, name in ipairs({ ':instances', ':created' }) do
        if call('HINCRBY', key, version .. name, -1) == 0 then call('HDEL', key, version .. name) end
    end
    if read_mode(root) == version_counters.COUNTING then call('HDEL', keys.counted(root), id) end
end

-- Removes an instance that exists no more. Never throws: it is gone already.
function version_counters.remove(root, version, id)
    local key = keys.versions(root)
    local mode = pcall_redis('HGET', key, 'mode')
    if mode == version_counters.COUNTING and pcall_redis('HDEL', keys.counted(root), id) ~= 1 then return end
    pcall_redis('HINCRBY', key, version .. ':instances', -1)
end

-- Moves an instance from one version to another; both are numbers as text.
function version_counters.move(root, from, to, id)
    local key = keys.versions(root)
    if read_mode(root) == version_counters.COUNTING then
        if not call('HGET', keys.counted(root), id) then return end
        call('HSET', keys.counted(root), id, to)
    end
    call('HINCRBY', key, from .. ':instances', -1)
    call('HINCRBY', key, to .. ':instances', 1)
end

-- Moves a number of instances from one version to another, where they are not counted one by one.
function version_counters.move_many(root, from, to, count)
    local key = keys.versions(root)
    call('HINCRBY', key, from .. ':instances', -count)
    call('HINCRBY', key, to .. ':instances', count)
end

-- Counts something that went wrong in a version: 'refused', 'dead' or 'failed'. Never throws.
function version_counters.count(root, version, what)
    if version then pcall_redis('HINCRBY', keys.versions(root), version .. ':' .. what, 1) end
end

-- Counts the same by an instance; one that is gone counts nowhere.
function version_counters.count_of(root, id, what)
    if (id or '') == '' then return end
    local def = pcall_redis('HGET', keys.instance(root, id), '_def')
    version_counters.count(root, type(def) == 'string' and version_counters.parse_version(def), what)
end

local function drop_instances(key)
    for _, field in ipairs(call('HKEYS', key)) do
        if match(field, ':instances$') then call('HDEL', key, field) end
    end
end

-- Lists the numbers of the published versions, as texts.
function version_counters.list_versions(root)
    local found = {}
    for _, field in ipairs(call('HKEYS', keys.meta(root))) do
        found[#found + 1] = match(field, '^def:(%d+)$')
    end
    return found
end

local function read_total(root)
    return tonumber(call('HGET', keys.meta(root), 'instances') or 0)
end

-- Begins to count with a publication, where the numbers are known without a look at the instances: there are none, or all
-- have the only version.
function version_counters.begin(root)
    local key = keys.versions(root)
    if call('HGET', key, 'mode') then return end
    local total, versions = read_total(root), version_counters.list_versions(root)
    if total ~= 0 and #versions ~= 1 then return end
    drop_instances(key)
    if total ~= 0 then call('HSET', key, versions[1] .. ':instances', total) end
    call('HSET', key, 'mode', version_counters.EXACT)
end

-- Begins to count the instances one by one; answers whether that is needed.
function version_counters.begin_count(root)
    version_counters.begin(root)
    local mode = read_mode(root)
    if mode == version_counters.EXACT then return false end
    if not mode then
        drop_instances(keys.versions(root))
        call('DEL', keys.counted(root))
        call('HSET', keys.versions(root), 'mode', version_counters.COUNTING)
    end
    return true
end

-- Counts an instance unless that is done; answers whether it was new.
function version_counters.count_instance(root, id)
    local version = version_counters.parse_version(call('HGET', keys.instance(root, id), '_def') or '')
    if not version or call('HSETNX', keys.counted(root), id, version) == 0 then return false end
    call('HINCRBY', keys.versions(root), version .. ':instances', 1)
    return true
end

-- Ends the counting when every instance was counted, or when `is_forced`. Answers whether the counters are exact now.
function version_counters.finish_count(root, is_forced)
    if not is_forced and call('HLEN', keys.counted(root)) ~= read_total(root) then return false end
    call('HSET', keys.versions(root), 'mode', version_counters.EXACT)
    call('UNLINK', keys.counted(root))
    return true
end

-- Reads all counters: version -> {instances, created, refused, dead, failed}, and whether `instances` is exact. A machine
-- with one version needs no counter for it.
function version_counters.read(root)
    local flat, found, mode = call('HGETALL', keys.versions(root)), {}, nil
    for i = 1, #flat, 2 do
        local version, name = match(flat[i], '^(%d+):(%l+)$')
        if version then
            found[version] = found[version] or {}
            found[version][name] = tonumber(flat[i + 1])
        elseif flat[i] == 'mode' then
            mode = flat[i + 1]
        end
    end
    if mode == version_counters.EXACT then return found, true end
    local versions = version_counters.list_versions(root)
    if #versions ~= 1 then return found, false end
    found[versions[1]] = found[versions[1]] or {}
    found[versions[1]].instances = read_total(root)
    return found, true
end

-- Answers version -> instances where there are any; nil while that is not known.
function version_counters.read_instances(root)
    local found, exact = version_counters.read(root)
    if not exact then return nil end
    local counts = {}
    for version, row in pairs(found) do
        if (row.instances or 0) ~= 0 then counts[version] = row.instances end
    end
    return counts
end

-- Removes many instances, version -> how many, that were counted while the mode was not 'counting'.
function version_counters.remove_many(root, counts)
    for version, count in pairs(counts) do
        pcall_redis('HINCRBY', keys.versions(root), version .. ':instances', format('%d', -count))
    end
end

function version_counters.is_counting(root)
    return pcall_redis('HGET', keys.versions(root), 'mode') == version_counters.COUNTING
end

return version_counters
