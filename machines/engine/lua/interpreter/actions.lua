-- needs: chart, durations, expressions, fields, job_requests, json, reserved_events, sends, shared_lists, timers
-- needs: values, work_budget
-- Compiles actions to closures that change the context of a step; nothing is written here. What leaves the instance (jobs,
-- messages, log entries) is collected as effects for the commit.
local actions = {}

local MAX_LIST = 10000
local MAX_EFFECTS = 1000
local MAX_EFFECT_BYTES = 1048576 -- of one step
local MAX_RAISED = 1000 -- internal events that wait for their turn
local ACTION, EFFECT, TURN, SENDING = 10, 60, 6, 30 -- units of work
local LITERAL = { num = true, str = true, ['true'] = true, ['false'] = true, null = true }

local charge = work_budget.charge

local forms = {}

local function find_field(program, name)
    return program.fields[name] or error('definition: no data field ' .. tostring(name))
end

-- Adds a job, a message or a log entry, whose text has `bytes` bytes.
local function add_effect(ctx, message, bytes)
    if #ctx.effects >= MAX_EFFECTS then values.fail('more than ' .. MAX_EFFECTS .. ' effects in one step') end
    ctx.effect_bytes = (ctx.effect_bytes or 0) + bytes
    if ctx.effect_bytes > MAX_EFFECT_BYTES then
        values.fail('the effects of one step have more than ' .. MAX_EFFECT_BYTES .. ' bytes together')
    end
    charge(EFFECT + bytes / 100)
    shared_lists.append(ctx, 'effects', message)
end

-- Encodes the value here and not in the commit: one that is too large or too deep refuses the step.
local function add_log_effect(ctx, kind, name, value)
    local text = values.encode(kind .. ' ' .. name, value)
    add_effect(ctx, { kind = kind, name = name, text = text }, #text)
end

local function compile_optional(node, program)
    return node and expressions.compile(node, program) or function() return nil end
end

-- A literal is checked and encoded once, when the program is compiled.
forms.set = function(action, program)
    local field, value = find_field(program, action[2]), expressions.compile(action[3], program)
    if LITERAL[action[3][1]] then
        local fine, raw = pcall(field.encode, value())
        if fine then return function(ctx) fields.put_raw(ctx, field, raw) end end
    end
    local put, encode = fields.put_raw, field.encode
    return function(ctx) put(ctx, field, encode(value(ctx))) end
end

forms.unset = function(action, program)
    local field = find_field(program, action[2])
    return function(ctx) fields.clear(ctx, field) end
end

forms.append = function(action, program)
    local field, value = find_field(program, action[2]), expressions.compile(action[3], program)
    return function(ctx)
        local list = fields.read(ctx, field) or json.list()
        if not json.is_array(list) then values.fail(field.name .. ' is not a list') end
        if #list >= MAX_LIST then values.fail(field.name .. ' already holds ' .. MAX_LIST .. ' items') end
        list[#list + 1] = values.to_null(value(ctx))
        fields.write(ctx, field, list)
    end
end

-- Compiles a literal name, or an expression for one.
local function compile_name(spec, program)
    if type(spec) == 'table' then
        local value = expressions.compile(spec, program)
        return function(ctx) return values.check_text(value(ctx)) end
    end
    return function() return spec end
end

-- Makes an action that fails: for a reserved name, which a program of an earlier release may have.
local function make_refusing(name)
    return function() values.fail(reserved_events.describe(name)) end
end

forms.raise = function(action, program)
    local event, payload = compile_name(action[2], program), compile_optional(action[3], program)
    local computed = type(action[2]) == 'table'
    if not computed and reserved_events.is_reserved(action[2]) then return make_refusing(action[2]) end
    return function(ctx)
        charge(SENDING)
        if #ctx.internal >= MAX_RAISED then values.fail('more than ' .. MAX_RAISED .. ' raised events wait') end
        local name, given = event(ctx), payload(ctx) or {}
        if computed then sends.check_event(name) end
        -- Values share their parts: without a limit, an event that raises itself with twice its payload would never end.
        values.encode('the payload of ' .. name, given)
        shared_lists.append(ctx, 'internal', { name, given })
    end
end

local function make_send(spec, program)
    local event, to = compile_name(spec.event, program), compile_optional(spec.to, program)
    local data = compile_optional(spec.data, program)
    local delay, kind = compile_optional(spec.delay, program), compile_optional(spec.type, program)
    local id = spec.id and compile_name(spec.id, program) or function() return nil end
    local location = spec.idlocation and find_field(program, spec.idlocation)
    return function(ctx, message)
        charge(SENDING)
        message.id = id(ctx)
        if location then
            message.handle = message.id or 'send.' .. timers.make_id(ctx)
            fields.write(ctx, location, message.handle)
        end
        message.event, message.to, message.type = event(ctx), to(ctx), kind(ctx)
        local wait, payload = delay(ctx), data(ctx)
        if wait ~= nil then message.delay = durations.parse(wait) end
        message.payload = payload == nil and {} or payload
        message.text = values.encode('the data of ' .. message.event, message.payload)
        sends.send(ctx, message)
    end
end

-- Adds the id of the send to an error, for the error event.
forms.send = function(action, program)
    program.flat = false
    local send = make_send(action[2], program)
    return function(ctx)
        local message = {}
        local ok, caught = pcall(send, ctx, message)
        if ok then return end
        if type(caught) == 'table' then caught.sendid = message.id or message.handle end
        error(caught, 0)
    end
end

forms.cancel = function(action, program)
    program.flat = false
    local id = compile_name(action[2], program)
    return function(ctx) timers.cancel(ctx, id(ctx)) end
end

local compile

forms['if'] = function(action, program)
    local branches = {}
    for i, branch in ipairs(action[2]) do
        branches[i] = {
            branch.guard and expressions.compile(branch.guard, program),
            compile(branch['then'], program) or function() end,
        }
    end
    return function(ctx)
        charge(#branches * ACTION)
        for i = 1, #branches do
            if chart.evaluate_condition(ctx, branches[i][1]) then return branches[i][2](ctx) end
        end
    end
end

-- Iterates over a copy of the list as it is at the start (SCXML 4.6).
forms.foreach = function(action, program)
    local spec = action[2]
    local list, body = expressions.compile(spec['in'], program), compile(spec['do'], program)
    local item, index = find_field(program, spec.item), spec.index and find_field(program, spec.index)
    local turn = body and TURN + ACTION or TURN
    return function(ctx)
        local items = list(ctx)
        if values.kind_of(items) ~= 'array' then values.fail('foreach goes over a list, not ' .. values.kind_of(items)) end
        for i = 1, #items do
            charge(turn)
            fields.write(ctx, item, values.to_nil(items[i]))
            if index then fields.write(ctx, index, i - 1) end
            if body then body(ctx) end
        end
    end
end

forms.block = function(action, program)
    local body = compile(action[2], program)
    return function(ctx) if body then chart.run_block(ctx, body) end end
end

forms.enqueue = function(action, program)
    local spec = action[5] or {}
    spec.queue, spec.src, spec.input = action[2], action[3], action[4]
    job_requests.compile(spec, program)
    action.spec = spec -- for compiled steps
    return function(ctx)
        charge(job_requests.JOB)
        local plan = job_requests.plan(ctx, spec, 'enqueue ' .. spec.queue)
        add_effect(ctx, { kind = 'enqueue', spec = spec, plan = plan }, plan and plan.input and #plan.input or 0)
    end
end

forms.emit = function(action, program)
    if reserved_events.is_reserved(action[2]) then return make_refusing(action[2]) end
    local payload = compile_optional(action[3], program)
    return function(ctx) add_log_effect(ctx, 'emit', action[2], payload(ctx)) end
end

forms.log = function(action, program)
    local value = expressions.compile(action[2], program)
    return function(ctx) add_log_effect(ctx, 'log', 'log', value(ctx)) end
end

-- Compiles a list of actions to one closure; nil when it is empty.
compile = function(list, program)
    if not list or #list == 0 then return nil end
    local steps = {}
    for i, action in ipairs(list) do
        local form = forms[action[1]]
        if not form then error('definition: unknown action ' .. tostring(action[1])) end
        steps[i] = form(action, program)
    end
    if #steps == 1 then return steps[1] end
    return function(ctx)
        charge(#steps * ACTION)
        for i = 1, #steps do steps[i](ctx) end
    end
end

function actions.compile(list, program)
    program.in_action = true
    local compiled = compile(list, program)
    program.in_action = false
    return compiled
end

return actions
