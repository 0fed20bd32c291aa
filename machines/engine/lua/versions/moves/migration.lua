-- needs: arguments, chart, data_conversion, expressions, fields, instances, migration_places, migration_work
-- needs: programs, replies, values, version_gates
-- Evaluates what a plan does with an instance as it is now; writes nothing. `migration_writes` commits the result.
local migration = {}

local FORMAT = 1
local MAX_CACHED, MAX_NAME = 64, 40
local cache, cached = {}, 0
local NONE = {}

-- Compiles what the plan does with the instances of one version.
local function compile_source(plan, def, spec)
    local program, why = programs.load(plan.root, def)
    if not program then return nil, why end
    local computed, list = {}, {}
    for i, pair in ipairs(spec.data or {}) do
        local field = plan.target.fields[pair[1]]
        if not field then
            return nil, 'version ' .. plan.target.version .. " declares no data field '" .. tostring(pair[1]) .. "'"
        end
        computed[field.name] = true
        list[i] = { field = field, compute = expressions.compile(pair[2], program) }
    end
    local renames = false
    for old, new in pairs(spec.invokes or {}) do renames = renames or old ~= new end
    local copies, removed, can_fail = data_conversion.plan(program, plan.target, spec.fields or {}, computed)
    local is_trivial = not list[1] and not removed[1]
    for _, one in ipairs(copies) do
        is_trivial = is_trivial and one.same and one.from.name == one.field.name
    end
    return {
        program = program,
        is_trivial = is_trivial,
        spec = spec,
        computed = list,
        copies = copies,
        removed = removed,
        renames = renames,
        reads_data = can_fail or list[1] ~= nil,
        places = {},
        place_count = 0,
        version = program.version,
    }
end

local function compile(root, text)
    local ok, spec = pcall(cjson.decode, text or '')
    local is_plan = ok and type(spec) == 'table' and spec.format == FORMAT and type(spec.from) == 'table'
    if not is_plan or type(spec.to) ~= 'string' then
        return nil, 'a plan is JSON of format ' .. FORMAT
    end
    local target, why = programs.load(root, spec.to)
    if not target then return nil, why, true end
    local actions = {}
    for _, name in ipairs(spec.actions or {}) do actions[name] = true end
    local is_named = type(spec.id) == 'string' and #spec.id <= MAX_NAME and string.find(spec.id, '^%x+$')
    local plan = { root = root, spec = spec, target = target, name = is_named and spec.id or nil,
        actions = actions, has_actions = next(actions) ~= nil,
        undo = tonumber(spec.undo) or 0,
        keeps_removed = spec.removed == 'keep', from_now = spec.timers == 'now', from = {} }
    for def, source in pairs(spec.from) do
        plan.from[def], why = compile_source(plan, def, source)
        if not plan.from[def] then return nil, why, true end
    end
    return plan
end

-- Tells whether the programs that a plan was compiled with are those of today: an index that was added compiles them anew.
local function is_current(plan)
    if programs.load(plan.root, plan.target.def) ~= plan.target then return false end
    for def, source in pairs(plan.from) do
        if programs.load(plan.root, def) ~= source.program then return false end
    end
    return true
end

-- Compiles the program of a plan for one partition. Answers nil and why when it is no plan; the third result is true when it
-- names a version that is not published here.
function migration.compile(root, text)
    local key = redis.sha1hex(text or '') .. ' ' .. root
    local plan = cache[key]
    if plan and is_current(plan) then
        plan.gates = version_gates.read(root)
        return plan
    end
    local ok, made, why, is_stale = pcall(compile, root, text)
    if not ok then return nil, values.describe_error(made) end
    if not made then return nil, why, is_stale end
    if not plan then
        if cached >= MAX_CACHED then cache, cached = {}, 0 end
        cached = cached + 1
    end
    made.gates = version_gates.read(root)
    cache[key] = made
    return made
end

local function refuse(ctx, code, reason)
    return { outcome = 'refused', code = code, reason = reason, before = ctx }
end

-- Makes the context of the instance in the new version. It is always that of a statechart: the move may stop children, send
-- messages and drop timers whatever the new version has.
local function make_context(plan, ctx, place, now)
    local raw = {}
    for name, value in pairs(ctx.raw) do
        if string.sub(name, 1, 1) == '_' and string.sub(name, 1, 3) ~= '_h:' then raw[name] = value end
    end
    raw._def, raw._state = plan.target.def, place.config.text
    local after = chart.context(plan.target, ctx.id, raw, now)
    after.chart, after.key, after.revision = true, ctx.key, ctx.revision
    return after
end

-- Ends an instance that the plan puts into a final state, as a step would.
local function finish(after, final)
    if after.raw._parent or not after.program.flat or after.raw._timers or after.raw._children then
        chart.end_instance(after, chart.make_output(after, after.program.output or final.donedata))
    end
    after.is_finished = true
end

local function run_exit_actions(ctx, place)
    for i = #ctx.leaving, 1, -1 do
        local state = ctx.program.states[ctx.leaving[i]]
        if state.exit and not place.names[state.name] then chart.run_block(ctx, state.exit) end
    end
end

-- Runs the entry actions of states whose name was not active before, and what they raise.
local function run_entry_actions(after, before_names)
    for _, index in ipairs(after.config.all) do
        local state = after.program.states[index]
        if state.entry and not before_names[state.name] then chart.run_block(after, state.entry) end
    end
    chart.run_to_completion(after)
end

-- Takes over what exit actions of the old version have caused.
local function take_over(ctx, after)
    after.effects, after.internal = ctx.effects, ctx.internal
    after.messages, after.external = ctx.messages, ctx.external
end

-- Finds when the instance entered the last of its leaves: that is the time of entry in its hash.
local function find_latest_entry(result, now)
    local latest = 0
    for _, leaf in ipairs(result.place.config.leaves) do
        latest = math.max(latest, not result.after.fresh[leaf] and tonumber(result.entered[leaf]) or now)
    end
    return string.format('%.0f', latest)
end

local function evaluate_move(plan, source, ctx, place, now)
    local result = { outcome = 'moves', before = ctx, place = place, plan = plan, source = source }
    local stored = {}
    for name, value in pairs(ctx.raw) do stored[name] = value end
    result.stored = stored
    if plan.actions.exit then
        ctx.leaving = ctx.config.all
        run_exit_actions(ctx, place)
    end
    local after = make_context(plan, ctx, place, now)
    result.after = after
    local why, code = data_conversion.apply(source, ctx, ctx.raw, after.raw, plan.keeps_removed)
    if why then return refuse(ctx, code, why) end
    fields.check_size(after)
    if plan.actions.exit then take_over(ctx, after) end
    migration_places.map_histories(source, plan.target, ctx.raw, after.raw, result)
    local was_finished, final = chart.is_finished(ctx), chart.find_final(after, { config = place.config, entering = {} })
    if was_finished and not final then
        local names = table.concat(place.config.names, ', ')
        return refuse(ctx, 'SB615', 'it has finished, and ' .. names .. ' is not final in version ' .. plan.target.version)
    end
    result.entered = migration_places.read_entered(plan.root, ctx, place, now)
    migration_work.evaluate(result, was_finished)
    if final and not was_finished then
        finish(after, final)
        result.effects[#result.effects + 1] = 'it ends in ' .. final.name
        migration_work.drop_all(result)
    elseif was_finished then
        after.raw._done = (not plan.target.flat or after.raw._parent) and '1' or nil
    end
    if plan.actions.entry and not final then run_entry_actions(after, migration_places.name_active(ctx)) end
    migration_work.finish(result)
    after.raw._entered = find_latest_entry(result, now)
    result.target = after.config.names
    local depends = result.plans_work or plan.actions.entry or plan.actions.exit
    result.reads_data, result.reads_data_only = source.reads_data or depends, source.reads_data and not depends
    return result
end

-- Decides what happens to an instance that has no place in the new version.
local function leave(plan, ctx, place)
    if place.code ~= 'SB610' then return refuse(ctx, place.code, place.reason) end
    if plan.spec.unmapped == 'keep' then
        return { outcome = 'kept', code = place.code, reason = place.reason, before = ctx }
    end
    if plan.spec.unmapped == 'suspend' then
        if ctx.raw._suspended or chart.is_finished(ctx) then
            local what = ctx.raw._suspended and 'it is suspended already' or 'it has finished'
            return { outcome = 'kept', code = place.code, reason = place.reason .. '; ' .. what, before = ctx }
        end
        return { outcome = 'suspends', code = place.code, reason = place.reason, before = ctx }
    end
    return refuse(ctx, place.code, place.reason)
end

local function evaluate(plan, ctx, now)
    local raw = ctx.raw
    if raw._def == plan.target.def then return { outcome = 'already', before = ctx } end
    local source = plan.from[raw._def]
    if not source then
        return { outcome = 'kept', code = 'SB618', before = ctx,
            reason = 'the plan is not for version ' .. string.match(raw._def, '^%d*') }
    end
    local code, reason = version_gates.check(plan.gates, raw, plan.target.def)
    if code then return refuse(ctx, code, reason) end
    if raw._suspended and plan.spec.suspended == 'refuse' then
        return refuse(ctx, 'SB616', 'it is suspended, and the plan leaves suspended instances where they are')
    end
    local place = migration_places.find(source, plan.target, raw._state)
    if place.code then return leave(plan, ctx, place) end
    return evaluate_move(plan, source, ctx, place, now)
end

local function convert(plan, source, ctx)
    local after = { program = plan.target, raw = {} }
    local why, code = data_conversion.apply(source, ctx, ctx.raw, after.raw, false)
    if why then return code, why end
    fields.check_size(after)
end

-- Evaluates only the data of an instance, which else fares like another one of the same version, configuration and pending
-- work. Answers the code and the reason why it is refused, nil when it is not. Never throws.
function migration.check_data(plan, root, id, now)
    local ctx = instances.open(root, id, now)
    local source = ctx and plan.from[ctx.raw._def]
    if not source then return nil end
    local ok, code, why = pcall(convert, plan, source, ctx)
    if ok then return code, why end
    return 'SB617', chart.describe_failure(ctx, code)
end

-- Answers the result for an instance of which nothing but the version changes; nil for any other. Most instances are such:
-- this costs a fifth of a whole evaluation.
local function evaluate_plain(plan, id, raw, key, now)
    local source, gates = plan.from[raw._def], plan.gates
    if not source or not raw._state or plan.has_actions or gates.pinned or gates.withdrawn ~= '' then return nil end
    if raw._pin or raw._suspended or raw._timers or raw._children or raw._done or (raw._jobs or '') ~= '' then return nil end
    local place = source.places[raw._state]
    if not place or not place.is_plain then return nil end
    local after = {}
    for name, value in pairs(raw) do after[name] = value end
    after._def = plan.target.def
    return { outcome = 'moves', is_plain = true, plan = plan, source = source, stored = raw,
        target = place.config.names, effects = {}, withdrawn = NONE, renamed = NONE, left = NONE,
        before = { id = id, raw = raw, program = source.program, revision = tonumber(raw._version) },
        after = { id = id, key = key, now = now, raw = after, program = plan.target, config = place.config, edges = NONE,
            messages = NONE, effects = NONE } }
end

-- Evaluates what the plan does with an instance. Answers nil and a reply when it is not here, else `outcome` (moves, kept,
-- refused, suspends, already), `code`, `reason`, `target` (leaf states), `effects` (sentences) and `reads_data`: whether another
-- instance of the same version, configuration and pending work may fare differently. Never throws.
function migration.evaluate(plan, root, id, now)
    now = now or arguments.read_now('')
    local raw, key = instances.read(root, id)
    if not raw then return nil, instances.build_missing(root, id) end
    local plain = evaluate_plain(plan, id, raw, key, now)
    if plain then return plain end
    local ctx, missing = instances.make_context(root, id, raw, key, now)
    if not ctx then
        if missing[1] ~= replies.FAULT then return nil, missing end
        return { outcome = 'refused', code = 'SB619', reason = tostring(missing[2]) }
    end
    local ok, result = pcall(evaluate, plan, ctx, now)
    if ok then return result end
    local failure = refuse(ctx, 'SB617', chart.describe_failure(ctx, result))
    failure.reads_data = true
    return failure
end

return migration
