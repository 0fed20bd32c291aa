-- needs: keys, programs
-- Reads the figures of a partition that pages show: instances by state, flow, refusals, queues, timers and messages. Reads
-- the states of the current version from its summary, so that no program is compiled for it.
local live_figures = {}

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

-- The service levels (ms by state) of the current version apply to all instances; `now` is the time they are measured at.
local function count_breaches(root, levels, now)
    local found = {}
    for state, sla in pairs(levels) do found[state] = redis.call('ZCOUNT', keys.state(root, state), '-inf', now - sla) end
    return found
end

-- The figures that change by the clock alone: overdue timers, and breaches of service levels.
local function read_clocked(root, summary, now)
    local late = redis.call('ZCARD', keys.late(root))
    return late, redis.call('ZCOUNT', keys.timers(root), '-inf', now) + late, count_breaches(root, summary.levels, now)
end

-- Reads all figures at `now` (ms); `current` is `<version>:<digest>` of the current version.
function live_figures.read(root, current, now)
    local summary = programs.summarize(root, current)
    local counts, oldest = count_by_state(root, summary.leaves)
    local late, overdue, breaches = read_clocked(root, summary, now)
    return {
        version = tonumber(string.match(current, '^%d+')),
        counts = counts,
        oldest = oldest,
        breaches = breaches,
        flow = read_counters(keys.flow(root)),
        refused = read_counters(keys.refused(root)),
        queues = count_jobs(root),
        total = tonumber(redis.call('HGET', keys.meta(root), 'instances') or 0),
        timers = redis.call('ZCARD', keys.timers(root)) + late,
        overdue = overdue,
        late = late,
        mail = redis.call('XLEN', keys.outbox(root)),
        now = now,
    }
end

return live_figures
