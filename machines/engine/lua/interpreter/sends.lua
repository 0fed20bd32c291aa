-- needs: durations, json, keys, reserved_events, shared_lists, strings, timers, values, work_budget
-- Events that an instance sends: to itself, its parent, its children, any other instance; now or later. Messages to others
-- are only collected here: the commit writes them to the outbox, from where they are delivered once.
local sends = {}

local MAX_WAITING = 1000 -- events of one step that wait for their turn
local MAX_MESSAGES = 1000 -- messages of one step
local MAX_BYTES = 1048576 -- of their data together
local MAX_OUTBOX = 100000 -- waiting messages of a partition; beyond it no more are accepted
local MAX_EVENT, MAX_ID, MAX_MACHINE = 400, 200, 64 -- bytes of names
local PROCESSOR = 'http://www.w3.org/TR/scxml/#SCXMLEventProcessor'
local TYPES = { [''] = true, scxml = true, [PROCESSOR] = true }
local MESSAGE = 60 -- units of work to write a message
local NOT_FOUND = {}
sends.PROCESSOR = PROCESSOR

-- Raises an internal event: [name, payload, facts].
function sends.raise(ctx, name, payload, facts)
    if #ctx.internal >= MAX_WAITING then values.fail('more than ' .. MAX_WAITING .. ' raised events wait') end
    shared_lists.append(ctx, 'internal', { name, payload, facts })
end

-- Raises an event of the engine itself: SCXML's platform events.
function sends.raise_platform(ctx, name, message, sendid)
    sends.raise(ctx, name, { message = message }, { type = 'platform', sendid = sendid })
end

function sends.queue_external(ctx, name, payload, facts)
    if #ctx.external >= MAX_WAITING then values.fail('more than ' .. MAX_WAITING .. ' sent events wait') end
    shared_lists.append(ctx, 'external', { name, payload, facts })
end

-- Counts the machines above the instance; 0 when no other machine invoked it.
function sends.count_depth(ctx)
    local parent = sends.read_parent(ctx)
    return parent and parent.depth or 0
end

-- Answers why the outbox is full; nil when it is not.
local function check_outbox(ctx)
    -- Checked once in a step, and not where nothing is sent or no one learns of the refusal.
    if ctx.messages[1] or ctx.replayed or ctx.is_stopping then return nil end
    local waiting = redis.pcall('XLEN', keys.outbox(ctx.program.root))
    if type(waiting) ~= 'number' or waiting < MAX_OUTBOX then return nil end
    return waiting .. ' messages wait to be delivered: no more are taken'
end

-- Limits what an instance sends. Messages about its end and that of its children are never refused.
local function check_limits(ctx, body)
    if #ctx.messages >= MAX_MESSAGES then values.fail('more than ' .. MAX_MESSAGES .. ' messages in one step') end
    ctx.message_bytes = (ctx.message_bytes or 0) + #(body.data or '')
    work_budget.charge(MESSAGE + #(body.data or '') / 50)
    if ctx.message_bytes > MAX_BYTES then values.fail('the messages of one step have at most ' .. MAX_BYTES .. ' bytes') end
    local why = check_outbox(ctx)
    if why then values.fail(why) end
end

-- Adds a message for the outbox. `kind`: event, start, stop, done, or lost.
function sends.add_message(ctx, kind, to, body)
    if kind == 'event' or kind == 'start' then check_limits(ctx, body) end
    if kind == 'start' then body.depth = sends.count_depth(ctx) + 1 end
    body.from = { machine = ctx.program.machine, id = ctx.id }
    shared_lists.append(ctx, 'messages', { kind = kind, machine = to.machine, id = to.id, body = body })
end

-- Throws when a computed name is no valid name of an event.
function sends.check_event(name)
    if name == '' or #name > MAX_EVENT or string.find(name, '[%c ]') or not strings.is_valid(name) then
        values.fail('an event has a name of 1 to ' .. MAX_EVENT .. ' bytes without spaces, not ' .. values.describe(name))
    end
    if reserved_events.is_reserved(name) then values.fail(reserved_events.describe(name)) end
end

function sends.make_address(ctx)
    return '#_scxml_' .. ctx.program.machine .. '/' .. ctx.id
end

function sends.read_children(ctx)
    if not ctx.children then ctx.children = ctx.raw._children and cjson.decode(ctx.raw._children) or {} end
    return ctx.children
end

function sends.read_parent(ctx)
    return ctx.raw._parent and cjson.decode(ctx.raw._parent) or nil
end

-- Answers the address of another instance, nil for this one. Whether it exists shows when the message is delivered.
local function check_address(ctx, machine, id)
    if machine == ctx.program.machine and id == ctx.id then return nil end
    if #machine > MAX_MACHINE or not string.find(machine, '^[%a_][%w_.-]*$') then
        values.fail('no machine can be called ' .. values.describe(machine))
    end
    if #id > MAX_ID or not string.find(id, '%S') or string.find(id, '%c') or not strings.is_valid(id) then
        values.fail('no instance can have the id ' .. values.describe(id))
    end
    return { machine = machine, id = id }
end

-- Resolves a target: nil for the instance itself, 'internal', or {machine, id, invoke}; NOT_FOUND when it does not exist.
local function resolve_target(ctx, to)
    if to == nil or to == '' then return nil end
    if values.kind_of(to) == 'object' then
        if type(to.machine) ~= 'string' or type(to.id) ~= 'string' then
            values.fail('a target has a machine and an id, both text, not ' .. values.describe(to))
        end
        return check_address(ctx, to.machine, to.id)
    end
    values.check_text(to)
    if to == '#_internal' then return 'internal' end
    if to == '#_parent' then
        local parent = sends.read_parent(ctx)
        return parent and { machine = parent.machine, id = parent.id, invoke = parent.invoke } or NOT_FOUND
    end
    local machine, id = string.match(to, '^#_scxml_([^/]+)/(.+)$')
    if machine then return check_address(ctx, machine, id) end
    if string.sub(to, 1, 8) == '#_scxml_' then return NOT_FOUND end
    if string.sub(to, 1, 2) == '#_' then
        local child = sends.read_children(ctx)[string.sub(to, 3)]
        return child and { machine = child.machine, id = child.id } or NOT_FOUND
    end
    values.fail('no event can be sent to ' .. values.describe(to))
end

-- Sends an event at once. `text`: the payload as JSON where it is encoded already. `sends.send` refuses reserved names; a
-- delayed event of an earlier release may still have one.
function sends.send_now(ctx, to, event, payload, facts, text)
    if reserved_events.is_reserved(event) then
        return sends.raise_platform(ctx, 'error.communication', reserved_events.describe(event), facts.sendid)
    end
    local target = resolve_target(ctx, to)
    if target == nil then
        facts.type = 'external'
        sends.queue_external(ctx, event, payload, facts)
    elseif target == 'internal' then
        sends.raise(ctx, event, payload, { type = 'internal', sendid = facts.sendid })
    elseif target == NOT_FOUND then
        sends.raise_platform(ctx, 'error.communication', 'the target does not exist: ' .. values.describe(to), facts.sendid)
    else
        text = text or values.encode('the data of ' .. event, payload)
        local why = ctx.program.raises and check_outbox(ctx)
        if why then return sends.raise_platform(ctx, 'error.communication', why, facts.sendid) end
        sends.add_message(ctx, 'event', target, { event = event, data = text, sendid = facts.sendid, invoke = target.invoke })
    end
end

-- Sends an event. `spec`: event, to, payload, delay ms, id given by the definition or nil, type of target; all evaluated.
function sends.send(ctx, spec)
    sends.check_event(spec.event)
    if not TYPES[spec.type or ''] then values.fail('no event can be sent by the type ' .. values.describe(spec.type)) end
    local facts = { sendid = spec.id, origin = sends.make_address(ctx), origintype = PROCESSOR }
    if not spec.delay or spec.delay == 0 then return sends.send_now(ctx, spec.to, spec.event, spec.payload, facts, spec.text) end
    if spec.to == '#_internal' then values.fail('an internal event cannot be delayed') end
    resolve_target(ctx, spec.to) -- an invalid target fails now and not when the event is due
    local text = spec.text or values.encode('the data of ' .. spec.event, spec.payload)
    local target = spec.to == nil and '' or type(spec.to) == 'string' and spec.to
        or '#_scxml_' .. spec.to.machine .. '/' .. spec.to.id
    timers.arm(ctx, { timers.make_id(ctx), ctx.now + spec.delay, spec.event, 0, spec.handle or spec.id or '', text, target,
        spec.id and 1 or 0 })
end

return sends
