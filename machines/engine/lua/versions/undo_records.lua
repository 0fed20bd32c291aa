-- needs: chart, configurations, instance_records, jobs, keys, programs
-- Undo records: what an instance was before a plan moved it, as far as the move changed it. With one, the way back restores
-- the instance byte for byte, as long as it has taken no step since.
local undo_records = {}

local WATCHED = { '_jobs', '_timers', '_children' } -- what can change without a step

-- Lists what the move changes in the hash: the old values, and the fields that there were not.
local function list_changes(before, after)
    local set, gone = {}, {}
    for name, value in pairs(before) do
        if after[name] ~= value and name ~= '_version' then set[name] = value end
    end
    for name in pairs(after) do
        if before[name] == nil then gone[#gone + 1] = name end
    end
    return set, gone
end

-- Makes the record of a move that is about to be written; nil where the plan keeps none, and of a move that changes the version
-- alone: so does the way back. `added` are the jobs it has added.
function undo_records.make(result, added)
    local plan, before, after = result.plan, result.before, result.after
    local is_trivial = result.is_plain and (plan.spec.inverse_of or after.raw._actor == before.raw._actor)
    if plan.undo <= 0 or is_trivial then return nil end
    local set, gone = list_changes(result.stored, after.raw)
    local record = { revision = before.revision + 1, plan = plan.spec.id, def = result.stored._def, set = set, gone = gone,
        dead = result.stored._dead, entered = {}, added = added, jobs = {}, renamed = {}, left = {} }
    for _, name in ipairs(WATCHED) do record.left[name] = after.raw[name] end
    -- A message cannot be taken back.
    record.is_final = after.messages[1] ~= nil or after.effects[1] ~= nil or nil
    for name, score in pairs(result.left) do record.entered[name] = score end
    for i, job in ipairs(result.withdrawn) do record.jobs[i] = instance_records.make_job(plan.root, job, jobs.places) or false end
    for job, pair in pairs(result.renamed) do record.renamed[job] = pair[2] end
    return cjson.encode(record)
end

-- Reads the record of the move that the plan takes back; nil where there is none.
function undo_records.read(plan, ctx)
    local text = redis.pcall('GET', keys.undo(plan.root, ctx.id))
    local ok, record = pcall(cjson.decode, type(text) == 'string' and text or '')
    return ok and type(record) == 'table' and record.plan == plan.spec.inverse_of and record or nil
end

-- Tells whether the instance is as the move left it, so that its record restores it.
function undo_records.applies(record, ctx)
    if record.is_final or record.revision ~= ctx.revision then return false end
    for _, name in ipairs(WATCHED) do
        if (record.left[name] or '') ~= (ctx.raw[name] or '') then return false end
    end
    return true
end

local function restore_hash(ctx, record)
    local raw = {}
    for name, value in pairs(ctx.raw) do raw[name] = value end
    for _, name in ipairs(record.gone) do raw[name] = nil end
    for name, value in pairs(record.set) do raw[name] = value end
    return raw
end

-- Names the dead jobs that the instance waited for and that are still there, dead or handled.
local function find_dead_jobs(root, ctx, record)
    local found = {}
    for job in string.gmatch(type(record.dead) == 'string' and record.dead or '', '%S+') do
        local row = jobs.read(root, job)
        if row and row.instance == ctx.id and (row.place == 'dead' or row.place == 'handled') then found[#found + 1] = job end
    end
    return found[1] and table.concat(found, ' ') or nil
end

-- Reads leaf -> ms of entry, as text: as recorded, or as it is now for a leaf that the move left alone.
local function read_entered(root, after, record)
    local entered = {}
    for _, leaf in ipairs(after.config.leaves) do
        local name = after.program.states[leaf].name
        entered[leaf] = record.entered[name] or redis.call('ZSCORE', keys.state(root, name), after.id) or after.raw._entered
    end
    return entered
end

local function map_timers(text)
    local due = {}
    for _, timer in ipairs(text and cjson.decode(text) or {}) do due[timer[1]] = timer[2] end
    return due
end

-- Answers a result like that of an evaluated move, which restores the instance; nil and why when a unique key is taken.
function undo_records.restore(plan, ctx, record, now)
    local raw = restore_hash(ctx, record)
    raw._dead = find_dead_jobs(plan.root, ctx, record)
    local after = chart.context(plan.target, ctx.id, raw, now)
    if not after then return nil, 'the undo record is damaged' end
    after.key, after.revision = ctx.key, ctx.revision
    after.timers, after.timers_before = raw._timers and cjson.decode(raw._timers) or {}, map_timers(ctx.raw._timers)
    after.timers_changed = raw._timers ~= ctx.raw._timers
    local result = { outcome = 'moves', before = ctx, after = after, plan = plan, stored = ctx.raw, target = after.config.names,
        effects = {}, jobs = {}, withdrawn = record.added or {}, renamed = {}, restored = {}, is_back = true }
    result.entered = read_entered(plan.root, after, record)
    for job, invoke in pairs(record.renamed or {}) do result.renamed[job] = { invoke, '' } end
    for _, row in ipairs(record.jobs or {}) do
        if type(row) == 'table' then
            local held = { id = row[1], score = row[2], row = {} }
            for i = 3, #row, 2 do held.row[row[i]] = row[i + 1] end
            local unique = held.row.unique or ''
            local holder = unique ~= '' and jobs.find_holder(plan.root, held.row.queue, unique)
            if holder then return nil, 'the unique key ' .. unique .. ' is held by the open job ' .. holder end
            result.restored[#result.restored + 1] = held
        end
    end
    return result
end

return undo_records
