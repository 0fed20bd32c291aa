-- needs: arguments, json, keys, programs, replies
-- sb_live: reads everything that the dashboard shows of a partition, as absolute values at one moment.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '')
-- Returns: {OK, JSON {version, counts, oldest, breaches, flow, refused, queues, total, timers, overdue, late, mail, now}}
--          · {NOMACHINE} · {BADARG, why}
--          counts: leaf -> instances, for each leaf of the current version and each other one that holds any;
--          oldest: state -> ms entered; breaches: state with a service level ->
--          instances that have been in it for longer; flow: <version>:<transition> -> times taken;
--          refused: event -> times; queues: queue -> {ready, leased, delayed, dead}; total: instances;
--          timers, overdue, mail: how many wait; late: those of the overdue whose step failed
-- Notifies: nothing
-- Cost:    O(states + transitions + queues), whatever the number of instances
local PLACES = { ready = keys.ready, leased = keys.leased, delayed = keys.delayed, dead = keys.dead }

local function count_jobs(root)
    local found = {}
    for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do
        local row = {}
        for place, key in pairs(PLACES) do row[place] = redis.call('ZCARD', key(root, queue)) end
        found[queue] = row
    end
    return found
end

local function read_counters(key)
    local flat, found = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do found[flat[i]] = tonumber(flat[i + 1]) end
    return found
end

-- `declared`: the states of the current version.
local function count_by_state(root, declared)
    local counts, oldest = {}, {}
    for _, state in ipairs(redis.call('SMEMBERS', keys.states(root))) do
        local index = keys.state(root, state)
        local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
        if first[2] or declared[state] then counts[state] = redis.call('ZCARD', index) end
        if first[2] then oldest[state] = tonumber(first[2]) end
    end
    return counts, oldest
end

-- The service levels of the current version apply to all instances; `now` is the time they are measured at.
local function count_breaches(root, states, now)
    local found = {}
    for _, state in ipairs(states) do
        if state.sla then found[state.name] = redis.call('ZCOUNT', keys.state(root, state.name), '-inf', now - state.sla) end
    end
    return found
end

return function(KEYS, ARGV)
    local root, now = KEYS[1], arguments.read_now(ARGV[1] or '')
    if not now then return { replies.BAD_ARGUMENT, 'now is a whole number of ms' } end
    local current = redis.call('HGET', keys.meta(root), 'current')
    if not current then return { replies.NO_MACHINE } end
    local compiled = programs.load(root, current)
    local leaves, late = {}, redis.call('ZCARD', keys.late(root))
    for _, state in ipairs(compiled and compiled.states or {}) do leaves[state.name] = state.leaf end
    local counts, oldest = count_by_state(root, leaves)
    return { replies.OK, json.encode({
        version = tonumber(string.match(current, '^%d+')),
        counts = counts,
        oldest = oldest,
        breaches = count_breaches(root, compiled and compiled.states or {}, now),
        flow = read_counters(keys.flow(root)),
        refused = read_counters(keys.refused(root)),
        queues = count_jobs(root),
        total = tonumber(redis.call('HGET', keys.meta(root), 'instances') or 0),
        timers = redis.call('ZCARD', keys.timers(root)) + late,
        overdue = redis.call('ZCOUNT', keys.timers(root), '-inf', now) + late,
        late = late,
        mail = redis.call('XLEN', keys.outbox(root)),
        now = now,
    }) }
end
