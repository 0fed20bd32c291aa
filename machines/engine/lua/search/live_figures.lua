-- needs: keys, programs, step_source, version_counters
-- Reads the figures of a partition that pages show: instances by state, flow, refusals, queues, timers and messages. Reads
-- the states of the current version from its summary, so that no program is compiled for it.
local live_figures = {}

local PLACES = { ready = keys.ready, leased = keys.leased, delayed = keys.delayed, dead = keys.dead,
    handled = keys.handled }

local MAX_CHECKED = 1000 -- instances of one state, some 0.5 ms
local MAX_BUDGET = 5000 -- instances of one call
local COSTLY = 100 -- instances; what looked at more is remembered
local REMEMBER_MS = 1000
local MAX_REMEMBERED = 1000 -- states

-- State index -> what was found lately: {before, suspended, looked, first}. Suspending and resuming forgets all of it.
local remembered, remembered_count = {}, 0

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

-- Called when an instance is suspended or resumed.
function live_figures.forget_suspended() remembered, remembered_count = {}, 0 end

-- Looks for suspended instances among the oldest of a state: they are held by a person, so that they break no service level.
-- `budget.left`: how many may be looked at. Answers how many are suspended, how many were looked at, and the ms at which the
-- first that is not suspended entered the state.
local function find_suspended(root, state, before, budget)
    local most, index = math.min(budget.left, MAX_CHECKED), keys.state(root, state)
    if most <= 0 then return 0, 0 end
    local lately = remembered[index]
    if lately and before >= lately.before and before - lately.before < REMEMBER_MS then
        return lately.suspended, lately.looked, lately.first
    end
    local rows = redis.call('ZRANGEBYSCORE', index, '-inf', before, 'WITHSCORES', 'LIMIT', 0, most)
    local suspended, first = 0, nil
    for i = 1, #rows, 2 do
        local held = redis.call('HGET', keys.instance(root, rows[i]), '_suspended')
        if held then suspended = suspended + 1 else first = first or tonumber(rows[i + 1]) end
    end
    local looked = #rows / 2
    budget.left = budget.left - looked
    if looked >= COSTLY then
        if remembered_count >= MAX_REMEMBERED then live_figures.forget_suspended() end
        if not remembered[index] then remembered_count = remembered_count + 1 end
        -- Those that grow late within the second count as looked at.
        remembered[index] = { before = before, suspended = suspended, looked = looked < most and math.huge or looked,
            first = first }
    end
    return suspended, looked, first
end

-- The service levels (ms by state) of the current version apply to all instances; `now` is the time they are measured at.
-- Answers the breaches, how many of them were not looked at and may be suspended, and since when the first is in the state.
local function count_breaches(root, levels, now, budget)
    local found, unchecked, since = {}, {}, {}
    for state, sla in pairs(levels) do
        local count = redis.call('ZCOUNT', keys.state(root, state), '-inf', now - sla)
        if count > 0 then
            local suspended, looked, first = find_suspended(root, state, now - sla, budget)
            if looked < count then unchecked[state] = count - looked end
            count, since[state] = math.max(count - suspended, 0), first
        end
        found[state] = count
    end
    return found, unchecked, since
end

-- The figures that change by the clock alone: late and overdue timers.
local function read_clocked(root, now)
    local late = redis.call('ZCARD', keys.late(root))
    return late, redis.call('ZCOUNT', keys.timers(root), '-inf', now) + late
end

-- Answers the ms at which the clock alone changes figures next: a timer becomes overdue, or an instance reaches a service
-- level. nil for never.
local function find_next_change(root, levels, now)
    local found
    local function note(index, time)
        local first = redis.call('ZRANGEBYSCORE', index, '(' .. string.format('%.0f', now - time), '+inf', 'WITHSCORES',
            'LIMIT', 0, 1)[2]
        if first then found = math.min(found or math.huge, first + time) end
    end
    note(keys.timers(root), 0)
    for state, sla in pairs(levels) do note(keys.state(root, state), sla) end
    return found
end

-- Makes the budget of one call: instances that are looked at for breaches of service levels, over all its partitions.
function live_figures.make_budget() return { left = MAX_BUDGET } end

-- Reads all figures at `now` (ms); `current` is `<version>:<digest>` of the current version.
function live_figures.read(root, current, now, budget)
    local summary = programs.summarize(root, current)
    local counts, oldest = count_by_state(root, summary.leaves)
    local late, overdue = read_clocked(root, now)
    local breaches, unchecked, since = count_breaches(root, summary.levels, now, budget)
    return {
        version = tonumber(string.match(current, '^%d+')),
        counts = counts,
        oldest = oldest,
        breaches = breaches,
        unchecked = unchecked,
        breached_since = since,
        flow = read_counters(keys.flow(root)),
        refused = read_counters(keys.refused(root)),
        queues = count_jobs(root),
        total = tonumber(redis.call('HGET', keys.meta(root), 'instances') or 0),
        timers = redis.call('ZCARD', keys.timers(root)) + late,
        overdue = overdue,
        late = late,
        mail = redis.call('XLEN', keys.outbox(root)),
        compile_failures = step_source.count_failures(root),
        versions = version_counters.read_instances(root),
        now = now,
        next_change = find_next_change(root, summary.levels, now),
    }
end

return live_figures
