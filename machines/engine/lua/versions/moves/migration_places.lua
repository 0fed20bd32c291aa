-- needs: chart, configurations, keys
-- Finds where an instance stands in another version: its configuration, the time of entry of each leaf, and what its history
-- states have recorded. What depends on the configuration alone is cached with the plan.
local migration_places = {}

local MAX_PLACES = 2048
local gmatch, concat = string.gmatch, table.concat

-- Lists the targets of all active leaves. Answers the list, target -> the old leaves that lead there, and the leaves without
-- a place.
local function collect_targets(source, target, text)
    local targets, arrivals, unmapped = {}, {}, {}
    for name in gmatch(text, '[^\n]+') do
        local mapped = source.spec.states[name]
        if type(mapped) ~= 'table' or not mapped[1] then
            unmapped[#unmapped + 1] = name
        else
            for _, to in ipairs(mapped) do
                local index = target.index[to]
                if not index or target.states[index].kind == 'history' then
                    return nil, nil, nil, "version " .. target.version .. " has no state '" .. tostring(to) .. "'"
                end
                if not arrivals[index] then targets[#targets + 1], arrivals[index] = index, {} end
                table.insert(arrivals[index], name)
            end
        end
    end
    return targets, arrivals, unmapped
end

-- Maps each leaf of the configuration to the old leaves that lead into it; a leaf that was entered by default because its
-- region is new has none.
local function find_origins(target, config, arrivals, targets)
    local origins, kept = {}, {}
    for _, index in ipairs(targets) do kept[index] = true end
    for _, leaf in ipairs(config.leaves) do
        local found = {}
        for index, names in pairs(arrivals) do
            if kept[index] and (index == leaf or configurations.is_below(target, leaf, index)) then
                for _, name in ipairs(names) do found[#found + 1] = name end
            end
        end
        origins[leaf] = found
    end
    return origins
end

local function compute(source, target, text)
    local targets, arrivals, unmapped, wrong = collect_targets(source, target, text)
    if wrong then return { code = 'SB611', reason = wrong } end
    if unmapped[1] then
        local names = concat(unmapped, ', ')
        return { code = 'SB610', reason = 'the plan has no place for ' .. names .. ' of version ' .. source.version }
    end
    targets = configurations.keep_innermost(target, targets)
    if not configurations.can_be_together(target, targets) then
        local names = {}
        for i, index in ipairs(targets) do names[i] = target.states[index].name end
        local from = string.gsub(text, '\n', ', ')
        return { code = 'SB611', reason = from .. ' would become ' .. concat(names, ' and ') .. ', which version '
            .. target.version .. ' never has active together' }
    end
    local config = configurations.plan_entry(target, targets).config
    local names = {}
    for _, index in ipairs(config.all) do names[target.states[index].name] = true end
    return { config = config, names = names, origins = find_origins(target, config, arrivals, targets) }
end

local function has_work(program, config)
    for _, index in ipairs(config.all) do
        local state = program.states[index]
        if state.timed or state.final or state.invokes and state.invokes[1] then return true end
    end
    return false
end

-- Tells whether the move from this configuration changes nothing but the version, as far as the definitions say: each leaf
-- stays where it is, and neither version has timers, invokes or histories there.
local function is_plain(source, target, place, text)
    if not source.is_trivial or place.config.text ~= text or source.program.histories[1] then return false end
    for _, leaf in ipairs(place.config.leaves) do
        local origins = place.origins[leaf]
        if origins[1] ~= target.states[leaf].name or origins[2] then return false end
    end
    local before = configurations.parse(source.program, text)
    return before ~= nil and not has_work(source.program, before) and not has_work(target, place.config)
end

-- Answers {config, names, origins, is_plain}, or {code, reason}.
function migration_places.find(source, target, text)
    local known = source.places[text]
    if known then return known end
    if source.place_count >= MAX_PLACES then source.places, source.place_count = {}, 0 end
    local place = compute(source, target, text)
    place.is_plain = place.config and is_plain(source, target, place, text)
    source.places[text], source.place_count = place, source.place_count + 1
    return place
end

function migration_places.name_active(ctx)
    local names = {}
    for _, index in ipairs(ctx.config.all) do names[ctx.program.states[index].name] = true end
    return names
end

-- Reads leaf -> ms of entry in the new configuration, as text: the earliest of the leaves that lead there; now for a leaf
-- that none leads to.
function migration_places.read_entered(root, ctx, place, now)
    local entered, stamp = {}, string.format('%.0f', now)
    local leaves = place.config.leaves
    if not ctx.chart or not leaves[2] and not ctx.config.leaves[2] then
        entered[leaves[1]] = ctx.raw._entered
        for i = 2, #leaves do entered[leaves[i]] = place.origins[leaves[i]][1] and ctx.raw._entered or stamp end
        if leaves[2] and not place.origins[leaves[1]][1] then entered[leaves[1]] = stamp end
        return entered
    end
    for _, leaf in ipairs(leaves) do
        local earliest
        for _, name in ipairs(place.origins[leaf]) do
            local score = redis.call('ZSCORE', keys.state(root, name), ctx.id) or ctx.raw._entered
            if not earliest or tonumber(score) < tonumber(earliest) then earliest = score end
        end
        entered[leaf] = earliest or stamp
    end
    return entered
end

-- Maps what the history states have recorded, leaf by leaf. A record of which a part has no place below the same history
-- state is forgotten.
function migration_places.map_histories(source, target, before, after, result)
    for old, new in pairs(source.spec.histories or {}) do
        local record = before['_h:' .. old]
        local index = target.index[new]
        local history = index and target.states[index]
        if record and history and history.kind == 'history' then
            local found, whole = {}, true
            for name in gmatch(record, '[^\n]+') do
                local mapped = source.spec.states[name] or target.index[name] and { name } or {}
                local place = mapped[1] and not mapped[2] and target.index[mapped[1]]
                if place and (configurations.is_below(target, place, history.parent)) then
                    found[#found + 1] = mapped[1]
                else
                    whole = false
                end
            end
            if whole and found[1] then after['_h:' .. new] = concat(found, '\n') else result.forgets = true end
        end
    end
end

return migration_places
