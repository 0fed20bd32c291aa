-- needs: chart, configurations, expressions, json, values
-- Why a guard does not hold: the leaves that decided it, with the values they saw. Walks the same tree the
-- closures came from; runs only when someone asks or a step is refused, so it may compile on the spot.
local explain = {}

local MAX_LEAVES = 20

-- Names a leaf reads, with their values now.
local function collect(node, ctx, seen)
    if type(node) ~= 'table' then return end
    local form = node[1]
    if form == 'data' then
        local field = ctx.program.fields[node[2]]
        local raw = ctx.raw[node[2]]
        seen[node[2]] = values.stored(raw ~= nil and field.decode(raw) or nil)
    elseif form == 'get' and node[2][1] == 'event' and node[3][1] == 'str' then
        seen['event.' .. node[3][2]] = values.stored(ctx.payload[node[3][2]])
    elseif form == 'now' then
        seen.now = math.floor(ctx.now / 1000)
    elseif form == 'obj' then
        for i = 2, #node do collect(node[i][2], ctx, seen) end
    else
        for i = 2, #node do collect(node[i], ctx, seen) end
    end
end

local function judge(node, ctx)
    local ok, value = pcall(expressions.compile(node, ctx.program), ctx)
    if not ok then return 'error', values.message(value) end
    return values.truth(value) and 'true' or 'false'
end

local walk

local function leaf(text, node, ctx, found)
    if #found >= MAX_LEAVES then return end
    local verdict, message = judge(node, ctx)
    local seen = {}
    collect(node, ctx, seen)
    found[#found + 1] = { text = text, verdict = verdict, values = seen, message = message }
end

-- An `and` is decided by its first part that does not hold, an `or` by all of its parts.
walk = function(node, ctx, found)
    local form = node[1]
    if form == 'because' then
        leaf(node[2], node[3], ctx, found)
    elseif form == 'and' then
        for i = 2, #node do
            local draws = ctx.draws
            if judge(node[i], ctx) ~= 'true' then
                ctx.draws = draws
                return walk(node[i], ctx, found)
            end
        end
    elseif form == 'or' then
        for i = 2, #node do walk(node[i], ctx, found) end
    elseif form == 'not' then
        walk(node[2], ctx, found)
    end
end

-- Judged with the random values the guard itself drew, from `draws` on.
function explain.guard(transition, ctx, draws)
    local found, drawn = json.list(), ctx.draws
    if transition.tree then
        ctx.draws = draws
        walk(transition.tree, ctx, found)
        if #found == 0 then leaf(transition.text or 'guard', transition.tree, ctx, found) end
        ctx.draws = drawn
    end
    return found
end

local function describe(ctx, event, transition, verdict, draws)
    local names = {}
    for i, target in ipairs(transition.targets) do names[i] = ctx.program.states[target].name end
    return {
        id = transition.id,
        event = event,
        target = names[1] and table.concat(names, ', ') or json.null,
        guard = transition.text or json.null,
        verdict = verdict,
        allow = transition.allow,
        because = (verdict == 'guard' or verdict == 'error') and explain.guard(transition, ctx, draws) or json.list(),
    }
end

-- 'open', 'guard' or 'error'.
local function verdict_of(transition, ctx)
    if not transition.guard then return 'open' end
    local ok, value = pcall(transition.guard, ctx)
    return not ok and 'error' or values.truth(value) and 'open' or 'guard'
end

-- In a chart, whose leaves may each take one: those that were open and lost are 'not reached' behind an earlier one, or
-- 'pre-empted' by a transition of another region.
local function chart_candidates(ctx, event)
    local listed, known, taken = json.list(), {}, {}
    ctx.event = { event, ctx.payload, { type = 'external' } }
    for _, transition in ipairs(chart.select(ctx, event) or {}) do taken[transition] = true end
    ctx.draws = nil
    for _, list in ipairs(configurations.candidates(ctx.program, ctx.config, event)) do
        local behind = false
        for _, transition in ipairs(list) do
            local draws = ctx.draws
            local verdict = known[transition] or verdict_of(transition, ctx)
            if not known[transition] then
                local shown = taken[transition] and 'taken' or verdict
                if shown == 'open' then shown = behind and 'not reached' or 'pre-empted' end
                listed[#listed + 1] = describe(ctx, event, transition, shown, draws)
            end
            known[transition], behind = verdict, behind or verdict == 'open'
        end
    end
    return listed, next(taken) ~= nil
end

-- Every transition the active states have for the event, innermost first, then in document order, with its verdict.
function explain.candidates(ctx, event)
    if ctx.chart then return chart_candidates(ctx, event) end
    local listed, taken = json.list(), false
    ctx.draws = nil
    for _, transition in ipairs(ctx.program.states[ctx.state].listening(event)) do
        local draws = ctx.draws
        local verdict = taken and 'not reached' or verdict_of(transition, ctx)
        if verdict == 'open' then
            taken, verdict = true, 'taken'
        end
        listed[#listed + 1] = describe(ctx, event, transition, verdict, draws)
    end
    return listed, taken
end

return explain
