-- needs: chart, durations, jobs, keys, sends, timers
-- What happens to the pending work of an instance that gets another version: its timers, jobs and children. The same timer,
-- job or child stays as it is; what has no counterpart ends; what the new configuration has besides begins.
local migration_work = {}

local ID, DUE, EVENT, STATE = 1, 2, 3, 4
local JOB = '^%d+%-%d+$'

local function describe(result, text)
    result.effects[#result.effects + 1] = text
end

local function copy_timer(timer)
    local made = {}
    for i = 1, 9 do made[i] = timer[i] end
    return made
end

-- Lists the events of the timed transitions of the active states of the old version.
local function list_timed(ctx)
    local found = {}
    for _, index in ipairs(ctx.config.all) do
        for _, transition in ipairs(ctx.program.states[index].timed or {}) do found[transition.events[1]] = true end
    end
    return found
end

-- Adds a timer that is kept. Where regions become one, two timers may become the same: the earlier one stays.
local function keep_earliest(after, kept, timer)
    for i, other in ipairs(kept) do
        if other[EVENT] == timer[EVENT] and other[STATE] == timer[STATE] then
            if timer[DUE] < other[DUE] then kept[i] = timer end
            after.timers_changed = true
            return
        end
    end
    kept[#kept + 1] = timer
end

-- Keeps the timers that the new version has too, and delayed events. Answers event of the new version -> true for those that
-- need not be armed: they are kept, or have fired in this stay already.
local function keep_timers(result)
    local before, after, spec = result.before, result.after, result.source.spec
    local settled, kept = {}, {}
    after.timers_before = {}
    for event in pairs(list_timed(before)) do
        local pair = spec.timers and spec.timers[event]
        if pair then settled[pair[1]] = true end
    end
    local stored = before.raw._timers and cjson.decode(before.raw._timers) or {}
    for _, timer in ipairs(before.timers or stored) do
        if timer[STATE] == 0 then
            kept[#kept + 1] = timer
        else
            local pair = spec.timers and spec.timers[timer[EVENT]]
            local index = pair and after.program.index[pair[2]]
            if index and after.config.active[index] then
                local made = copy_timer(timer)
                if made[EVENT] ~= pair[1] or made[STATE] ~= index then after.timers_changed = true end
                made[EVENT], made[STATE] = pair[1], index
                keep_earliest(after, kept, made)
            else
                after.timers_changed = true
                local state = before.program.states[timer[STATE]]
                describe(result, 'the timer of ' .. (state and state.name or '?') .. ' (' .. timer[EVENT] .. ') is disarmed')
            end
        end
    end
    for _, timer in ipairs(stored) do after.timers_before[timer[ID]] = timer[DUE] end
    after.timers = kept
    if before.timers_changed then after.timers_changed = true end
    return settled
end

-- Answers the ms since which a state counts as active: the earliest entry of the leaves below it.
local function find_entry(result, index)
    local after, earliest = result.after, nil
    local last = after.program.states[index].last
    for _, leaf in ipairs(result.place.config.leaves) do
        local entered = tonumber(result.entered[leaf])
        if leaf >= index and leaf <= last and (not earliest or entered < earliest) then earliest = entered end
    end
    return earliest or after.now
end

local function arm_timers(result, settled)
    local after = result.after
    for _, index in ipairs(after.config.all) do
        for _, transition in ipairs(after.program.states[index].timed or {}) do
            local event = transition.events[1]
            if not settled[event] then
                local since = result.plan.from_now and after.now or find_entry(result, index)
                local delay = durations.parse(transition.delay(after))
                if not transition.is_fixed then result.plans_work = true end
                timers.arm(after, { timers.make_id(after), since + delay, event, index, '', '', '', 0 })
                describe(result, 'the timer of ' .. after.program.states[index].name .. ' (' .. event .. ') is armed from '
                    .. (result.plan.from_now and 'now' or 'its entry'))
            end
        end
    end
end

-- Lists the invokes of the active states of a context: id -> invoke, and id -> index of the state.
local function list_invokes(program, active)
    local found, hosts = {}, {}
    for _, index in ipairs(active) do
        for _, invoke in ipairs(program.states[index].invokes or {}) do found[invoke.id], hosts[invoke.id] = invoke, index end
    end
    return found, hosts
end

-- Renames the invoke of dead jobs: nobody waits for them, but they may be made ready again.
local function rename_dead(result)
    local spec, root = result.source.spec, result.plan.root
    local text = redis.call('HGET', keys.wrong(root), result.before.id)
    local ok, causes = pcall(cjson.decode, text or '{}')
    for cause in pairs(ok and type(causes) == 'table' and causes or {}) do
        local invoke = string.find(cause, JOB) and jobs.read_invoke(root, cause)
        local new = invoke and spec.invokes[invoke]
        if new and new ~= invoke then result.renamed[cause] = { new, invoke } end
    end
end

-- Keeps a job whose invoke the new version has in an active state.
local function sort_jobs(result, wanted)
    local before, spec, root = result.before, result.source.spec, result.plan.root
    for job in string.gmatch(before.raw._jobs or '', '%S+') do
        local invoke = jobs.read_invoke(root, job) or ''
        local new = spec.invokes and spec.invokes[invoke]
        if new and wanted[new] and not wanted[new].machine then
            result.jobs[#result.jobs + 1] = job
            if new ~= invoke then result.renamed[job] = { new, invoke } end
        else
            result.withdrawn[#result.withdrawn + 1] = job
            describe(result, 'the job of ' .. (invoke == '' and job or invoke) .. ' is withdrawn')
        end
    end
end

-- Keeps a child whose invoke the new version has in an active state under the same id; others stop.
local function sort_children(result, wanted, hosts)
    local before, after, spec = result.before, result.after, result.source.spec
    local stored = before.raw._children and cjson.decode(before.raw._children) or {}
    after.children = {}
    for invoke, child in pairs(before.children or stored) do
        if spec.invokes and spec.invokes[invoke] == invoke and wanted[invoke] and wanted[invoke].machine then
            if child.state ~= hosts[invoke] then after.children_changed = true end
            child.state = hosts[invoke]
            after.children[invoke] = child
        else
            sends.add_message(after, 'stop', child, { invoke = invoke })
            after.children_changed = true
            describe(result, 'the child of ' .. invoke .. ' is stopped')
        end
    end
end

-- Starts the invokes that the old configuration did not have. One that it had was asked for already: its job may be done,
-- dead or on its way.
local function start_invokes(result, wanted, hosts)
    local before, after, spec = result.before, result.after, result.source.spec
    local had = list_invokes(before.program, before.config.all)
    local asked = {}
    for old in pairs(had) do
        local new = spec.invokes and spec.invokes[old]
        if new and not (had[old].machine and new ~= old) then asked[new] = true end
    end
    local order = {}
    for id in pairs(wanted) do order[#order + 1] = id end
    table.sort(order)
    for _, id in ipairs(order) do
        local invoke = wanted[id]
        if not asked[id] then
            chart.start_invoke(after, invoke, hosts[id])
            if not invoke.plain then result.plans_work = true end
            describe(result, (invoke.machine and 'a child of ' or 'a job of ') .. id .. ' begins')
        end
    end
end

-- Fills `result` with what happens to timers, jobs and children. `is_done`: the instance has finished and has none.
function migration_work.evaluate(result, is_done)
    result.effects, result.jobs, result.withdrawn, result.renamed = {}, {}, {}, {}
    local after = result.after
    if after.messages[1] then after.children_changed = true end
    if is_done then
        after.timers, after.timers_before, after.children = {}, {}, {}
        return
    end
    local settled = keep_timers(result)
    local wanted, hosts = list_invokes(after.program, after.config.all)
    sort_jobs(result, wanted)
    if result.source.renames then rename_dead(result) end
    sort_children(result, wanted, hosts)
    arm_timers(result, settled)
    start_invokes(result, wanted, hosts)
    if result.forgets then describe(result, 'a history state forgets what it recorded') end
end

-- Withdraws all work of an instance that ends with its move.
function migration_work.drop_all(result)
    for _, job in ipairs(result.jobs) do result.withdrawn[#result.withdrawn + 1] = job end
    result.jobs, result.renamed = {}, {}
    local after = result.after
    if next(after.children) then
        for invoke, child in pairs(after.children) do
            sends.add_message(after, 'stop', child, { invoke = invoke })
            after.children[invoke], after.children_changed = nil, true
        end
    end
    after.started = {}
    if after.timers[1] then after.timers, after.timers_changed = {}, true end
end

-- Withdraws the jobs of states that entry actions have left again, and writes the bookkeeping into the new hash.
function migration_work.finish(result)
    local after = result.after
    local raw = after.raw
    local kept = {}
    for _, job in ipairs(result.jobs) do
        local renamed = result.renamed[job]
        local id = renamed and renamed[1] or jobs.read_invoke(result.plan.root, job) or ''
        local host = after.program.invoked_by[id]
        if host and after.exited[host] then
            result.withdrawn[#result.withdrawn + 1] = job
        else
            kept[#kept + 1] = job
        end
    end
    result.jobs = kept
    raw._timers = after.timers and timers.encode(after) or nil
    raw._children = after.children and next(after.children) and cjson.encode(after.children) or nil
    if after.has_ended then raw._done = '1' end
    raw._state = after.config.text
end

return migration_work
