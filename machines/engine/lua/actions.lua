-- needs: core, json, values, fields, expressions
-- Actions become closures that change the step's own picture of the instance; nothing is written here.
-- What leaves the instance (jobs, outbox messages, log lines) is collected as effects for the commit.
local actions = {}

local MAX_LIST = 10000
local MAX_EFFECTS = 1000
local MAX_RAISED = 1000 -- internal events that wait for their turn
local LITERAL = { num = true, str = true, ['true'] = true, ['false'] = true, null = true }

local forms = {}

local function field_of(program, name)
    return program.fields[name] or error('definition: no data field ' .. tostring(name))
end

-- The value is written as JSON here and not by the commit: one that is too large or too deep refuses the step.
local function effect(ctx, kind, name, value, extra)
    if #ctx.effects >= MAX_EFFECTS then values.fail('more than ' .. MAX_EFFECTS .. ' effects in one step') end
    local text = values.encoded(kind .. ' ' .. name, value)
    core.add(ctx, 'effects', { kind = kind, name = name, text = text, extra = extra })
end

local function optional(node, program)
    return node and expressions.compile(node, program) or function() return nil end
end

-- A literal is checked and encoded once, when the program is compiled.
forms.set = function(action, program)
    local field, value = field_of(program, action[2]), expressions.compile(action[3], program)
    if LITERAL[action[3][1]] then
        local fine, raw = pcall(field.encode, value())
        if fine then return function(ctx) fields.put(ctx, field, raw) end end
    end
    local put, encode = fields.put, field.encode
    return function(ctx) put(ctx, field, encode(value(ctx))) end
end

forms.unset = function(action, program)
    local field = field_of(program, action[2])
    return function(ctx) fields.clear(ctx, field) end
end

forms.append = function(action, program)
    local field, value = field_of(program, action[2]), expressions.compile(action[3], program)
    return function(ctx)
        local list = fields.read(ctx, field) or json.list()
        if not json.is_array(list) then values.fail(field.name .. ' is not a list') end
        if #list >= MAX_LIST then values.fail(field.name .. ' already holds ' .. MAX_LIST .. ' items') end
        list[#list + 1] = values.stored(value(ctx))
        fields.write(ctx, field, list)
    end
end

forms.raise = function(action, program)
    local event, payload = action[2], optional(action[3], program)
    return function(ctx)
        if #ctx.internal >= MAX_RAISED then values.fail('more than ' .. MAX_RAISED .. ' raised events wait') end
        local given = payload(ctx) or {}
        -- Values share their parts: without a bound, an event that raises itself with twice its payload never ends.
        values.encoded('the payload of ' .. event, given)
        core.add(ctx, 'internal', { event, given })
    end
end

forms.enqueue = function(action, program)
    local input = optional(action[4], program)
    return function(ctx) effect(ctx, 'enqueue', action[2], input(ctx), action[3]) end
end

forms.emit = function(action, program)
    local payload = optional(action[3], program)
    return function(ctx) effect(ctx, 'emit', action[2], payload(ctx)) end
end

forms.log = function(action, program)
    local value = expressions.compile(action[2], program)
    return function(ctx) effect(ctx, 'log', 'log', value(ctx)) end
end

-- One closure for a list of actions; nil when there are none.
function actions.compile(list, program)
    if not list or #list == 0 then return nil end
    local steps = {}
    for i, action in ipairs(list) do
        local form = forms[action[1]]
        if not form then error('definition: unknown action ' .. tostring(action[1])) end
        steps[i] = form(action, program)
    end
    if #steps == 1 then return steps[1] end
    return function(ctx)
        for i = 1, #steps do steps[i](ctx) end
    end
end

return actions
