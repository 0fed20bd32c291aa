-- needs: chart_writes, commit, data_indexes, dead_jobs, due_times, job_requests, jobs, json, keys, migration_marks, step_log
-- needs: packed_jobs, ready_order, timers, undo_records, values, work_budget
-- Commits the move of an instance to another version: indexes, history, jobs, timers and messages, then its hash. When a
-- write fails, because of a key of another type for example, the earlier ones are undone.
local migration_writes = {}

local call, pcall, unpack, min = redis.call, pcall, unpack, math.min

local EVENT = '(migrate)'
local HISTORY_SLACK = 16
local MAX_VALUES = 4000 -- in one command: Lua's stack holds 8000 values

-- The progress of the current commit, for an undo. One is enough: the server runs one call at a time.
local progress

local function log_undo(command, key, first, second)
    local undo_log = progress.undo_log
    local at = #undo_log
    undo_log[at + 1], undo_log[at + 2], undo_log[at + 3], undo_log[at + 4] = command, key, first, second or false
end

-- Splits more values than one command can take.
local function call_in_parts(command, key, list)
    for from = 1, #list, MAX_VALUES do call(command, key, unpack(list, from, min(from + MAX_VALUES - 1, #list))) end
end

-- Notes the score of each leaf that the instance leaves or that changes, and writes the new ones. A leaf of the same name and
-- time of entry costs nothing.
local function write_state_indexes(result)
    local root, id, before, after = result.plan.root, result.before.id, result.before, result.after
    local names, leaves, latest = {}, after.config.leaves, nil
    result.left = {}
    for _, leaf in ipairs(leaves) do
        local state = after.program.states[leaf]
        local stamp = after.fresh[leaf] and json.number(after.now) or result.entered[leaf] or json.number(after.now)
        names[state.name] = true
        if not latest or tonumber(stamp) > tonumber(latest) then latest = stamp end
        local key = keys.state(root, state.name)
        local there = call('ZSCORE', key, id)
        if there ~= stamp then
            if there then result.left[state.name] = there end
            call('ZADD', key, stamp, id)
            if there then log_undo('ZADD', key, there, id) else log_undo('ZREM', key, id) end
        end
    end
    if not result.is_back then after.raw._entered = latest end -- the latest entry, as after any step
    for name in string.gmatch(before.raw._state, '[^\n]+') do
        if not names[name] then
            local score = call('ZSCORE', keys.state(root, name), id)
            if score then result.left[name] = score end
            progress.leaves[#progress.leaves + 1] = name
        end
    end
end

local function as_json(program, name, raw)
    local field = program.fields[name]
    return field.quoted .. (field.plain and raw or field.as_json(raw))
end

-- Lists the changed data as the history holds it: `{"field":value}` and, for unset fields, `,["field"]`.
local function describe_data(result)
    local stored, after, set, gone, converted = result.stored, result.after, '', nil, {}
    for _, one in ipairs(result.source and result.source.copies or {}) do
        if one.from and not one.same then converted[one.field.name] = true end
    end
    for _, field in ipairs(after.program.ordered) do
        local raw = after.raw[field.name]
        if raw ~= nil and (raw ~= stored[field.name] or converted[field.name]) then
            set = set .. as_json(after.program, field.name, raw)
        end
    end
    for _, field in ipairs(result.before.program.ordered) do
        if stored[field.name] ~= nil and after.raw[field.name] == nil then
            gone = (gone and gone .. ',' or ',[') .. json.quote(field.name)
        end
    end
    return set ~= '' and '{' .. string.sub(set, 2) .. '}' or '0', gone and gone .. ']' or ''
end

local function quote_state(after)
    return chart_writes.quote_configuration(after.config)
end

-- Describes the move as the payload of its step. It is the same for all instances of a version that the plan moves.
local function describe_move(result)
    local source = result.source or {}
    source.payload = source.payload or string.format('{"from":%s,"to":%s,"plan":%s%s}', string.match(result.stored._def, '^%d+'),
        result.after.program.version, json.quote(result.plan.spec.id or ''), result.is_back and ',"back":true' or '')
    return source.payload
end

local function append_history(result, actor, reason)
    local after, plan = result.after, result.plan
    local keep = after.program.history
    if keep == 0 then return end
    local set, gone = '0', ''
    if not result.is_plain then set, gone = describe_data(result) end
    local edges = {}
    for i, edge in ipairs(after.edges) do edges[i] = edge.id end
    local key = keys.history(plan.root, after.id)
    local length = call('RPUSH', key, '[' .. after.raw._version .. ',' .. json.number(after.now) .. ',' .. json.quote(EVENT)
        .. quote_state(after) .. ',' .. json.quote(table.concat(edges, ' ')) .. ','
        .. (actor == '' and '0,' or json.quote(actor) .. ',') .. (reason == '' and '0,' or json.quote(reason) .. ',')
        .. describe_move(result) .. ',' .. set .. gone .. ']')
    progress.history, progress.trim = key, length > keep + HISTORY_SLACK and keep
end

-- Adds the jobs of invokes that begin. Answers their ids.
local function add_jobs(result)
    local after, root, added = result.after, result.plan.root, {}
    local ending = ' ' .. table.concat(result.withdrawn, ' ') .. ' '
    for _, started in ipairs(after.started) do
        local spec = job_requests.make_spec(after.id, started.invoke, started.plan, started.invoke.id)
        local job, there, holder = jobs.enqueue(root, spec, after.now, ending)
        if there then values.fail('the unique key of ' .. started.invoke.id .. ' is held by the open job ' .. job) end
        table.insert(progress.added, { job = job, spec = spec, holder = holder })
        added[#added + 1] = job
    end
    return added
end

-- Writes a job again as it was before the plan withdrew it. One that was running is ready again: its worker knows.
local function restore_job(root, held, now)
    local row, queue = held.row, held.row.queue
    if row.place == 'leased' then
        row.place, row.token, row.worker, row.deadline, row.extended, row.due = 'ready', '', nil, nil, nil, now
    end
    local key, flat = keys.job(root, held.id), {}
    for name, value in pairs(row) do flat[#flat + 1], flat[#flat + 2] = name, value end
    call('HSET', key, unpack(flat))
    log_undo('DEL', key, key)
    local score = row.place == 'ready' and ready_order.compute_score(root, queue, held.id, row) or held.score
    call('ZADD', jobs.places[row.place](root, queue), score, held.id)
    log_undo('ZREM', jobs.places[row.place](root, queue), held.id)
    call('DEL', keys.withdrawn(root, held.id))
    if (row.unique or '') ~= '' and not jobs.has_ended(row.place) then
        local unique = keys.unique(root, queue, row.unique)
        call('SET', unique, held.id)
        log_undo('DEL', unique, unique)
    end
    if row.place == 'delayed' then due_times.note(root, tonumber(held.score), now) end
    progress.rings[queue] = row.place == 'ready' or progress.rings[queue]
end

local function write_jobs(result)
    local root, after = result.plan.root, result.after
    local added = add_jobs(result)
    for job, pair in pairs(result.renamed) do
        local key = keys.job(root, job)
        packed_jobs.spread(key)
        local was = call('HGET', key, 'invoke')
        if was then
            call('HSET', key, 'invoke', pair[1])
            log_undo('HSET', key, 'invoke', was)
        end
    end
    for _, held in ipairs(result.restored or {}) do restore_job(root, held, after.now) end
    if not result.is_back then
        local awaited = {}
        for _, job in ipairs(result.jobs) do awaited[#awaited + 1] = job end
        for _, job in ipairs(added) do awaited[#awaited + 1] = job end
        local text = table.concat(awaited, ' ')
        if text ~= (result.stored._jobs or '') then after.raw._jobs = text end
    end
    return added
end

local function write_undo_record(result, added)
    local plan, key = result.plan, keys.undo(result.plan.root, result.after.id)
    local text = not result.is_back and undo_records.make(result, added)
    if not text then
        if not result.is_plain then progress.undo_key = key end
    elseif not call('SET', key, text, 'PX', plan.undo, 'GET') then
        log_undo('DEL', key, key)
    end
end

local function write_hash(result)
    local stored, raw, key = result.stored, result.after.raw, result.after.key
    local set, gone = {}, {}
    for name, value in pairs(raw) do
        if stored[name] ~= value then set[#set + 1], set[#set + 2] = name, value end
    end
    for name in pairs(stored) do
        if raw[name] == nil then gone[#gone + 1] = name end
    end
    call_in_parts('HSET', key, set)
    if gone[1] then call_in_parts('HDEL', key, gone) end
end

local function write(result, actor, reason, clock)
    local root, before, after = result.plan.root, result.before, result.after
    after.raw._version = json.number(before.revision + 1)
    if not result.is_back then
        after.raw._plans = migration_marks.add(result.plan, result.stored, string.match(result.stored._def, '^%d+'))
    end
    if actor ~= '' and not result.plan.spec.inverse_of then after.raw._actor = actor end
    progress.indexed = true
    data_indexes.move(after.id, before.program, result.stored, after.program, after.raw)
    local added
    if not result.is_plain then
        write_state_indexes(result)
        added = write_jobs(result)
    end
    append_history(result, actor, reason)
    if after.timers_changed then chart_writes.write_timers(after, progress.undo_log) end
    if after.messages[1] then chart_writes.post_messages(after, progress.undo_log) end
    write_undo_record(result, added)
    if after.effects[1] then commit.carry_out_effects(after) end
    if step_log.is_on(root, clock) then
        step_log.append(root, after.program.machine, after.id, after.raw._version, EVENT, string.sub(quote_state(after), 2))
    end
    write_hash(result)
end

local function undo(result)
    if progress.indexed then data_indexes.undo() end
    chart_writes.undo(progress.undo_log)
    if progress.history then redis.pcall('RPOP', progress.history) end
    for i = #progress.added, 1, -1 do
        local added = progress.added[i]
        jobs.undo_enqueue(result.plan.root, added.job, added.spec, added.holder)
    end
end

-- What nothing can undo comes last: the indexes of leaves left, and the jobs that are withdrawn.
local function finish(result)
    local root, id = result.plan.root, result.after.id
    for _, name in ipairs(progress.leaves) do redis.pcall('ZREM', keys.state(root, name), id) end
    for _, job in ipairs(result.withdrawn) do jobs.remove(root, job, 'withdrawn') end
    local dead = result.after.raw._dead
    if dead and result.is_back then dead_jobs.await_again(root, id, dead) end
    if dead and not result.is_back then dead_jobs.judge_again(root, id, dead, result.after.now) end
    if progress.undo_key then redis.pcall('DEL', progress.undo_key) end
    for _, added in ipairs(progress.added) do
        if (added.spec.delay or 0) == 0 then progress.rings[added.spec.queue] = true end
    end
    for queue, rings in pairs(progress.rings) do
        if rings then jobs.ring_bell(root, queue) end
    end
end

-- Lists the states that get another name: version -> leaf -> its states in the new version.
local function list_renamed(plan)
    local found, any = {}, false
    for def, source in pairs(plan.from) do
        local renamed = {}
        for leaf, names in pairs(source.spec.states or {}) do
            if names[1] and (names[2] or names[1] ~= leaf) then renamed[leaf] = names end
        end
        if next(renamed) then found[string.match(def, '^%d+')], any = renamed, true end
    end
    return any and cjson.encode(found) or ''
end

-- Records how the plan maps states, for the replay of histories that it is in: `plan:<id>:<version>` of the partition's meta.
function migration_writes.record_plan(plan)
    plan.renamed = plan.renamed or list_renamed(plan)
    if plan.name and plan.renamed ~= '' then
        call('HSETNX', keys.meta(plan.root), 'plan:' .. plan.name .. ':' .. plan.target.version, plan.renamed)
    end
end

-- Writes an evaluated move. Answers true, or nil and why nothing was written. The caller counts it and rings the pulse.
function migration_writes.write(result, actor, reason, clock)
    work_budget.stop()
    progress = { undo_log = {}, added = {}, leaves = {}, rings = {}, history = nil, trim = nil, indexed = false }
    local ok, caught = pcall(write, result, actor, reason, clock)
    if not ok then
        undo(result)
        return nil, type(caught) == 'table' and caught.err or values.describe_error(caught)
    end
    finish(result)
    if progress.trim then call('LTRIM', progress.history, -progress.trim, -1) end
    return true
end

return migration_writes
