-- needs: keys
-- Counters of the versions of a machine in one partition, a hash: `<version>:instances` that exist now, and `created`,
-- `refused`, `dead`, `failed` since the first publication. A step that is accepted writes none of them.
local version_counters = {}

local call, pcall_redis, match, format = redis.call, redis.pcall, string.match, string.format

-- Parses the number in `<version>:<digest>`.
function version_counters.parse_version(def)
    return match(def or '', '^(%d+):')
end

-- Adds an instance that exists from now on. `is_created`: it was not brought from elsewhere.
function version_counters.add(root, version, is_created)
    local key = keys.versions(root)
    call('HINCRBY', key, version .. ':instances', 1)
    if is_created then call('HINCRBY', key, version .. ':created', 1) end
end

-- Takes back `add` of a new instance when a later write of the same step failed.
function version_counters.undo(root, version)
    local key = keys.versions(root)
    for _, name in ipairs({ ':instances', ':created' }) do
        if call('HINCRBY', key, version .. name, -1) == 0 then call('HDEL', key, version .. name) end
    end
end

-- Removes instances that exist no more. Never throws: they are gone already.
function version_counters.remove(root, version, count)
    pcall_redis('HINCRBY', keys.versions(root), version .. ':instances', format('%d', -(count or 1)))
end

-- Moves instances from one version to another; both are numbers as text.
function version_counters.move(root, from, to, count)
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

-- Marks the counters as complete, which programs of the release before ask for.
function version_counters.begin(root)
    call('HSET', keys.versions(root), 'mode', 'exact')
end

-- Reads all counters: version -> {instances, created, refused, dead, failed}.
function version_counters.read(root)
    local flat, found = call('HGETALL', keys.versions(root)), {}
    for i = 1, #flat, 2 do
        local version, name = match(flat[i], '^(%d+):(%l+)$')
        if version then
            found[version] = found[version] or {}
            found[version][name] = tonumber(flat[i + 1])
        end
    end
    return found
end

-- Answers version -> instances where there are any.
function version_counters.read_instances(root)
    local counts = {}
    for version, row in pairs(version_counters.read(root)) do
        if (row.instances or 0) ~= 0 then counts[version] = row.instances end
    end
    return counts
end

return version_counters
