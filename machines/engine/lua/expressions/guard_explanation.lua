-- needs: chart, configurations, expressions, json, values, work_budget
-- Explains why a guard is false: the leaves that decided it, with the values they read. It walks the tree of the guard and
-- compiles its parts again, which only callers that ask, and refused steps, pay for.
local guard_explanation = {}

guard_explanation.MAX_LEAVES = 20
local MAX_UNEXPLAINED = 50 -- candidates listed without an explanation
local TOO_MUCH = 'to explain it would be too much work'
local CANDIDATE = 60 -- units of work to describe one
local DEPTH = -64 -- leaves room for the explanation around a value of the largest depth
guard_explanation.VALUE_DEPTH = DEPTH + 3

-- Visits what an expression reads: 'data' and the name of a field, 'event' and the name of a field of the payload, 'now'.
local function visit_reads(node, visit)
    if type(node) ~= 'table' then return end
    local form = node[1]
    if form == 'data' then
        visit('data', node[2])
    elseif form == 'get' and node[2][1] == 'event' and node[3][1] == 'str' then
        visit('event', node[3][2])
    elseif form == 'now' then
        visit('now')
    elseif form == 'obj' then
        for i = 2, #node do visit_reads(node[i][2], visit) end
    else
        for i = 2, #node do visit_reads(node[i], visit) end
    end
end
guard_explanation.visit_reads = visit_reads

-- Collects the names that a leaf reads, with their current values.
local function collect_values(node, ctx, seen)
    visit_reads(node, function(kind, name)
        if kind == 'data' then
            local raw = ctx.raw[name]
            seen[name] = values.to_null(raw ~= nil and ctx.program.fields[name].decode(raw) or nil)
        elseif kind == 'event' then
            seen['event.' .. name] = values.to_null(ctx.payload[name])
        else
            seen.now = math.floor(ctx.now / 1000)
        end
    end)
end

-- Compiled parts of guards: they live as long as the program that has them.
local compiled = setmetatable({}, { __mode = 'k' })

local function evaluate_leaf(node, ctx)
    local evaluate = compiled[node]
    if not evaluate then
        evaluate = expressions.compile(node, ctx.program)
        compiled[node] = evaluate
    end
    local ok, value = pcall(evaluate, ctx)
    if not ok then
        work_budget.rethrow_exceeded(value)
        return 'error', values.describe_error(value)
    end
    return values.is_true(value) and 'true' or 'false'
end

local walk_tree

local function add_leaf(text, node, ctx, found)
    if #found >= guard_explanation.MAX_LEAVES then return end
    local verdict, message = evaluate_leaf(node, ctx)
    local seen = {}
    collect_values(node, ctx, seen)
    found[#found + 1] = { text = text, verdict = verdict, values = seen, message = message }
end

-- An `and` is decided by its first part that is false, an `or` by all of its parts.
walk_tree = function(node, ctx, found)
    local form = node[1]
    if form == 'because' then
        add_leaf(node[2], node[3], ctx, found)
    elseif form == 'and' then
        for i = 2, #node do
            local draws = ctx.draws
            if evaluate_leaf(node[i], ctx) ~= 'true' then
                ctx.draws = draws
                return walk_tree(node[i], ctx, found)
            end
        end
    elseif form == 'or' then
        for i = 2, #node do walk_tree(node[i], ctx, found) end
    elseif form == 'not' then
        walk_tree(node[2], ctx, found)
    end
end

-- Evaluated with the random values that the guard itself drew, from `draws` on.
function guard_explanation.explain_guard(transition, ctx, draws)
    local found, drawn = json.list(), ctx.draws
    if transition.tree then
        ctx.draws = draws
        walk_tree(transition.tree, ctx, found)
        if #found == 0 then add_leaf(transition.text or 'guard', transition.tree, ctx, found) end
        ctx.draws = drawn
    end
    return found
end

-- Encodes a candidate as JSON up to its reasons: a list and a bracket follow.
function guard_explanation.begin_candidate(program, event, transition, verdict)
    local names = {}
    for i, target in ipairs(transition.targets) do names[i] = program.states[target].name end
    return '{"id":' .. json.quote(transition.id) .. ',"event":' .. json.quote(event)
        .. ',"target":' .. (names[1] and json.quote(table.concat(names, ', ')) or 'null')
        .. ',"guard":' .. (transition.text and json.quote(transition.text) or 'null') .. ',"verdict":"' .. verdict .. '"'
        .. (transition.allow and ',"allow":' .. json.encode(transition.allow) or '')
        .. ',"because":'
end

local function encode_candidate(ctx, event, transition, verdict, because)
    return guard_explanation.begin_candidate(ctx.program, event, transition, verdict)
        .. (because[1] and json.encode(because, DEPTH) or '[]') .. '}'
end

local function encode_explained(ctx, event, transition, verdict, draws)
    work_budget.charge(CANDIDATE)
    local refused = verdict == 'guard' or verdict == 'error'
    local because = refused and guard_explanation.explain_guard(transition, ctx, draws) or json.list()
    return encode_candidate(ctx, event, transition, verdict, because)
end

local function encode_unexplained(ctx, event, transition)
    local why = { text = transition.text or 'guard', verdict = 'error', values = {}, message = TOO_MUCH }
    return encode_candidate(ctx, event, transition, 'error', json.list({ why }))
end

-- Answers 'open', 'guard' or 'error'.
local function judge_guard(transition, ctx)
    if not transition.guard then return 'open' end
    local ok, value = pcall(transition.guard, ctx)
    if not ok then work_budget.rethrow_exceeded(value) end
    return not ok and 'error' or values.is_true(value) and 'open' or 'guard'
end

-- Explains a chart, where each leaf may take a transition: an enabled one that is not taken is 'not reached' behind an
-- earlier one, or 'pre-empted' by another region.
local function explain_in_chart(ctx, event, listed)
    local known, taken = {}, {}
    ctx.event = { event, ctx.payload, { type = 'external' } }
    for _, transition in ipairs(chart.select_transitions(ctx, event) or {}) do taken[transition] = true end
    ctx.draws = nil
    for _, list in ipairs(configurations.list_candidates(ctx.program, ctx.config, event)) do
        local behind = false
        for _, transition in ipairs(list) do
            local draws = ctx.draws
            local verdict = known[transition] or judge_guard(transition, ctx)
            if not known[transition] then
                local shown = taken[transition] and 'taken' or verdict
                if shown == 'open' then shown = behind and 'not reached' or 'pre-empted' end
                listed[#listed + 1] = encode_explained(ctx, event, transition, shown, draws)
            end
            known[transition], behind = verdict, behind or verdict == 'open'
        end
    end
end

local function explain_flat(ctx, event, listed)
    local taken = false
    ctx.draws = nil
    for _, transition in ipairs(ctx.program.states[ctx.state].listening(event)) do
        local draws = ctx.draws
        local verdict = taken and 'not reached' or judge_guard(transition, ctx)
        if verdict == 'open' then
            taken, verdict = true, 'taken'
        end
        listed[#listed + 1] = encode_explained(ctx, event, transition, verdict, draws)
    end
end

-- Lists the same transitions, each once and in the same order.
function guard_explanation.list_transitions(program, config, event)
    local seen, found = {}, {}
    for _, list in ipairs(configurations.list_candidates(program, config, event)) do
        for _, transition in ipairs(list) do
            if not seen[transition] then seen[transition], found[#found + 1] = true, transition end
        end
    end
    return found
end

-- Explains as JSON every transition that the active states have for the event, innermost first, then in document order, and
-- answers how many there are. Beyond the work limit some are listed without an explanation, and the rest not at all.
function guard_explanation.explain_candidates(ctx, event)
    local all = guard_explanation.list_transitions(ctx.program, ctx.config, event)
    local listed = {}
    local ok, caught = pcall(ctx.chart and explain_in_chart or explain_flat, ctx, event, listed)
    if ok then return listed, #all end
    if not work_budget.is_exceeded() then error(caught, 0) end
    work_budget.stop()
    for i = #listed + 1, math.min(#all, #listed + MAX_UNEXPLAINED) do listed[i] = encode_unexplained(ctx, event, all[i]) end
    return listed, #all
end

return guard_explanation
