-- needs: arithmetic, builtins, fields, json, values, work_budget
-- Compiles expression trees to closures, once for each version of a definition. A closure takes the context of a step and
-- answers a value, or throws {sb = message}. It always ends: there are no loops, no recursion and no other names.
local expressions = {}

local NODE = 1 -- units of work to evaluate one part
local CALL = 4 -- further parts that a call counts for
local COMPILED = 6 -- units of work to compile one part
local UNCHARGED = 20 -- parts; evaluating so few is charged by the calling loop

local type = type
local compile
local part_count = 0 -- parts compiled since the root of the expression

local function make_constant(value)
    return function() return value end
end

local function compile_each(node, from, program)
    local parts = {}
    for i = from, #node do parts[#parts + 1] = compile(node[i], program) end
    return parts
end

local forms = {}
local NO_FACTS = {}

forms['null'] = function() return make_constant(nil) end
forms['true'] = function() return make_constant(true) end
forms['false'] = function() return make_constant(false) end
forms.num = function(node) return make_constant(node[2]) end
forms.str = function(node) return make_constant(node[2]) end
-- In definitions where errors are events, as in SCXML, an event without data has none; elsewhere its data is an empty
-- object.
forms.event = function(_, program)
    if not program.raises then return function(ctx) return ctx.payload end end
    return function(ctx)
        local payload = ctx.payload
        if type(payload) == 'table' and next(payload) == nil and not json.is_array(payload) then return nil end
        return payload
    end
end
forms.because = function(node, program) return compile(node[3], program) end

-- Whole seconds since the epoch.
forms.now = function() return function(ctx) return (ctx.now - ctx.now % 1000) / 1000 end end

-- Joins the active leaves; empty before the first is entered. Of a flat machine it is the state whose entry actions run.
local function join_states(ctx)
    if not ctx.chart and ctx.state then return ctx.program.states[ctx.state].name end
    return ctx.config and table.concat(ctx.config.names, ', ') or ''
end

forms.instance = function()
    return function(ctx)
        return {
            id = ctx.id,
            machine = ctx.program.machine,
            revision = ctx.revision,
            version = ctx.revision, -- its name in programs of earlier releases
            state = join_states(ctx),
            given = json.list(ctx.given or {}),
            parent = ctx.raw._parent and json.decode(ctx.raw._parent) or json.null,
        }
    end
end

-- The fields of the current event; null before the first.
forms.trigger = function(_, program)
    program.flat = false
    return function(ctx)
        local event = ctx.event
        if not event then return nil end
        local facts = event[3] or NO_FACTS
        return {
            name = event[1],
            type = facts.type or 'internal',
            sendid = facts.sendid,
            origin = facts.origin,
            origintype = facts.origintype,
            invokeid = facts.invokeid,
        }
    end
end

forms.data = function(node, program)
    local field, name = program.fields[node[2]], node[2]
    if not field then error('definition: no data field ' .. tostring(name)) end
    local decode = field.decode
    return function(ctx)
        local raw = ctx.raw[name]
        if raw == nil then return nil end
        return decode(raw)
    end
end

forms.get = function(node, program)
    local container, key = compile(node[2], program), compile(node[3], program)
    if node[2][1] == 'event' and node[3][1] == 'str' then
        local name = node[3][2]
        return function(ctx)
            local payload = ctx.payload
            if type(payload) ~= 'table' or json.is_array(payload) then
                if name == 'result' then return payload end -- done data that is no object
                return values.get(payload, name)
            end
            local value = payload[name]
            if value == json.null then return nil end
            return value
        end
    end
    return function(ctx) return values.get(container(ctx), key(ctx)) end
end

forms.list = function(node, program)
    local parts = compile_each(node, 2, program)
    return function(ctx)
        local items = json.list()
        for i, part in ipairs(parts) do items[i] = values.to_null(part(ctx)) end
        return items
    end
end

forms.obj = function(node, program)
    local parts = {}
    for i = 2, #node do parts[i - 1] = { node[i][1], compile(node[i][2], program) } end
    return function(ctx)
        local object = {}
        for _, part in ipairs(parts) do object[part[1]] = values.to_null(part[2](ctx)) end
        return object
    end
end

forms['and'] = function(node, program)
    local parts = compile_each(node, 2, program)
    return function(ctx)
        local value
        for i = 1, #parts do
            value = parts[i](ctx)
            if not values.is_true(value) then return value end
        end
        return value
    end
end

forms['or'] = function(node, program)
    local parts = compile_each(node, 2, program)
    return function(ctx)
        local value
        for i = 1, #parts do
            value = parts[i](ctx)
            if values.is_true(value) then return value end
        end
        return value
    end
end

forms['not'] = function(node, program)
    local part = compile(node[2], program)
    return function(ctx) return not values.is_true(part(ctx)) end
end

forms.neg = function(node, program)
    local part = compile(node[2], program)
    return function(ctx) return -values.check_number(part(ctx)) end
end

local comparisons = {
    ['=='] = values.is_equal,
    ['!='] = function(a, b) return not values.is_equal(a, b) end,
    ['<'] = values.is_less,
    ['<='] = function(a, b) return not values.is_less(b, a) end,
    ['>'] = function(a, b) return values.is_less(b, a) end,
    ['>='] = function(a, b) return not values.is_less(a, b) end,
    ['in'] = function(a, b) return values.contains(b, a) end,
    ['not in'] = function(a, b) return not values.contains(b, a) end,
}

forms.cmp = function(node, program)
    local first, links = compile(node[2], program), {}
    for i = 3, #node do links[i - 2] = { comparisons[node[i][1]], compile(node[i][2], program) } end
    if #links == 1 then
        local compare, second = links[1][1], links[1][2]
        return function(ctx) return compare(first(ctx), second(ctx)) end
    end
    return function(ctx)
        local left = first(ctx)
        for _, link in ipairs(links) do
            local right = link[2](ctx)
            if not link[1](left, right) then return false end
            left = right
        end
        return true
    end
end

forms.bin = function(node, program)
    local operate, left, right = arithmetic[node[2]], compile(node[3], program), compile(node[4], program)
    return function(ctx) return operate(left(ctx), right(ctx)) end
end

forms['if'] = function(node, program)
    local test, yes, no = compile(node[2], program), compile(node[3], program), compile(node[4], program)
    return function(ctx)
        if values.is_true(test(ctx)) then return yes(ctx) end
        return no(ctx)
    end
end

forms['in'] = function(node, program)
    local index = program.index[node[2]]
    if not index then error('definition: no state ' .. tostring(node[2])) end
    if program.in_action then program.tracks_active, program.flat = true, false end -- the active states change during a step
    return function(ctx)
        if ctx.chart then return ctx.active[index] == true end
        return ctx.state == index
    end
end

forms.call = function(node, program)
    local fn, given = builtins[node[2]], compile_each(node, 3, program)
    part_count = part_count + CALL
    if not fn then error('definition: no function ' .. tostring(node[2])) end
    local one, two = given[1], given[2]
    if #given == 0 then return function(ctx) return fn(ctx) end end
    if #given == 1 then return function(ctx) return fn(ctx, one(ctx)) end end
    if #given == 2 then return function(ctx) return fn(ctx, one(ctx), two(ctx)) end end
    return function(ctx)
        local arguments = {}
        for i, part in ipairs(given) do arguments[i] = part(ctx) end
        return fn(ctx, unpack(arguments, 1, #given))
    end
end

compile = function(node, program)
    local form = forms[node[1]]
    if not form then error('definition: unknown expression ' .. tostring(node[1])) end
    part_count = part_count + 1
    return form(node, program)
end

-- Compiles a whole expression. Each part is evaluated once at most, so a large expression is charged as a whole.
function expressions.compile(node, program)
    part_count = 0
    local evaluate = compile(node, program)
    work_budget.charge(part_count * COMPILED)
    if part_count <= UNCHARGED then return evaluate end
    local work = part_count * NODE
    return function(ctx)
        work_budget.charge(work)
        return evaluate(ctx)
    end
end

return expressions
