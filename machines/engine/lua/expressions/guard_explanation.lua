-- needs: chart, configurations, expressions, json, values, work_budget
-- Why a guard does not hold: the leaves that decided it, with the values they saw. Walks the same tree the
-- closures came from; runs only when someone asks or a step is refused, so it may compile on the spot.
local guard_explanation = {}

local MAX_LEAVES = 20
local MAX_UNEXPLAINED = 50 -- candidates listed without why
local TOO_MUCH = 'to explain it would be too much work'
local CANDIDATE = 60 -- units of work to describe one
local UNCOUNTED = -64 -- a value nested as deep as data may be still has its place inside an explanation

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
    local evaluate = expressions.compile(node, ctx.program)
    local ok, value = pcall(evaluate, ctx)
    if not ok then
        work_budget.rethrow_exceeded(value)
        return 'error', values.message(value)
    end
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
function guard_explanation.guard(transition, ctx, draws)
    local found, drawn = json.list(), ctx.draws
    if transition.tree then
        ctx.draws = draws
        walk(transition.tree, ctx, found)
        if #found == 0 then leaf(transition.text or 'guard', transition.tree, ctx, found) end
        ctx.draws = drawn
    end
    return found
end

local function describe(ctx, event, transition, verdict, because)
    local names = {}
    for i, target in ipairs(transition.targets) do names[i] = ctx.program.states[target].name end
    local candidate = {
        id = transition.id,
        event = event,
        target = names[1] and table.concat(names, ', ') or json.null,
        guard = transition.text or json.null,
        verdict = verdict,
        allow = transition.allow,
        because = because,
    }
    return json.encode(candidate, UNCOUNTED)
end

local function explained(ctx, event, transition, verdict, draws)
    work_budget.charge(CANDIDATE)
    local refused = verdict == 'guard' or verdict == 'error'
    return describe(ctx, event, transition, verdict, refused and guard_explanation.guard(transition, ctx, draws) or json.list())
end

local function unexplained(ctx, event, transition)
    local why = { text = transition.text or 'guard', verdict = 'error', values = {}, message = TOO_MUCH }
    return describe(ctx, event, transition, 'error', json.list({ why }))
end

-- 'open', 'guard' or 'error'.
local function verdict_of(transition, ctx)
    if not transition.guard then return 'open' end
    local ok, value = pcall(transition.guard, ctx)
    if not ok then work_budget.rethrow_exceeded(value) end
    return not ok and 'error' or values.truth(value) and 'open' or 'guard'
end

-- In a chart, whose leaves may each take one: those that were open and lost are 'not reached' behind an earlier one, or
-- 'pre-empted' by a transition of another region.
local function chart_candidates(ctx, event, listed)
    local known, taken = {}, {}
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
                listed[#listed + 1] = explained(ctx, event, transition, shown, draws)
            end
            known[transition], behind = verdict, behind or verdict == 'open'
        end
    end
end

local function flat_candidates(ctx, event, listed)
    local taken = false
    ctx.draws = nil
    for _, transition in ipairs(ctx.program.states[ctx.state].listening(event)) do
        local draws = ctx.draws
        local verdict = taken and 'not reached' or verdict_of(transition, ctx)
        if verdict == 'open' then
            taken, verdict = true, 'taken'
        end
        listed[#listed + 1] = explained(ctx, event, transition, verdict, draws)
    end
end

-- The same transitions, each once and in the same order.
local function listeners(ctx, event)
    if not ctx.chart then return ctx.program.states[ctx.state].listening(event) end
    local seen, found = {}, {}
    for _, list in ipairs(configurations.candidates(ctx.program, ctx.config, event)) do
        for _, transition in ipairs(list) do
            if not seen[transition] then seen[transition], found[#found + 1] = true, transition end
        end
    end
    return found
end

-- Every transition the active states have for the event, innermost first, then in document order, with its verdict, as JSON;
-- and how many there are. Where to explain them all would be too much work, some are listed without why, and the rest not.
function guard_explanation.candidates(ctx, event)
    local listed, all = {}, listeners(ctx, event)
    local ok, caught = pcall(ctx.chart and chart_candidates or flat_candidates, ctx, event, listed)
    if ok then return listed, #all end
    if not work_budget.is_exceeded() then error(caught, 0) end
    work_budget.stop()
    for i = #listed + 1, math.min(#all, #listed + MAX_UNEXPLAINED) do listed[i] = unexplained(ctx, event, all[i]) end
    return listed, #all
end

return guard_explanation
