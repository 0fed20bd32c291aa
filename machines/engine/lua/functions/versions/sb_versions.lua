-- needs: arguments, json, keys, replies, version_counters
-- sb_versions: reads the counters of each version, and how long instances of each version have been in their states.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 instances to look at in each state for its times, 0 for none (at most 1000; 1500 in all, the same number in each
--          state) · 2 now (ms, or '')
-- Returns: {OK, JSON {exact, total, versions, flow, times, now}} · {NOMACHINE} · {BADARG, why}
--          exact: true; versions: version -> {instances, created, refused, dead, failed}; flow:
--          <version>:<transition> -> times taken; times: state -> {count, looked, ages: version -> ms in the state of each
--          instance that was looked at}
-- Notifies: nothing
-- Cost:    O(versions + transitions + instances looked at)
local MAX_SAMPLE, MAX_ALL = 1000, 1500 -- some ms

-- Selects instances of a state at even distances, the longest there first.
local function select_instances(index, count, sample)
    if count <= sample then return redis.call('ZRANGE', index, 0, -1, 'WITHSCORES') end
    local found = {}
    for i = 0, sample - 1 do
        local at = math.floor(i * (count - 1) / math.max(1, sample - 1))
        local pair = redis.call('ZRANGE', index, at, at, 'WITHSCORES')
        found[2 * i + 1], found[2 * i + 2] = pair[1], pair[2]
    end
    return found
end

local function read_ages(root, state, sample, now)
    local index = keys.state(root, state)
    local count = redis.call('ZCARD', index)
    if count == 0 then return nil end
    local found, ages = select_instances(index, count, sample), {}
    for i = 1, #found, 2 do
        local def = redis.call('HGET', keys.instance(root, found[i]), '_def')
        local version = version_counters.parse_version(def or '')
        if version then
            ages[version] = ages[version] or json.list()
            table.insert(ages[version], math.max(0, now - tonumber(found[i + 1])))
        end
    end
    return { count = count, looked = #found / 2, ages = ages }
end

local function read_times(root, sample, now)
    local times = {}
    if sample == 0 then return times end
    local states = redis.call('SMEMBERS', keys.states(root))
    local most = math.min(sample, math.max(1, math.floor(MAX_ALL / #states)))
    for _, state in ipairs(states) do times[state] = read_ages(root, state, most, now) end
    return times
end

local function read_flow(root)
    local flat, found = redis.call('HGETALL', keys.flow(root)), {}
    for i = 1, #flat, 2 do found[flat[i]] = tonumber(flat[i + 1]) end
    return found
end

return function(KEYS, ARGV)
    local root, sample = KEYS[1], arguments.parse_count(ARGV[1] or '', 0, MAX_SAMPLE)
    arguments.need(sample, 'a sample is 0 to ' .. MAX_SAMPLE)
    local now = arguments.need_now(ARGV[2])
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    return { replies.OK, json.encode({
        exact = true, total = tonumber(redis.call('HGET', keys.meta(root), 'instances') or 0),
        versions = version_counters.read(root), flow = read_flow(root), times = read_times(root, sample, now), now = now,
    }) }
end
