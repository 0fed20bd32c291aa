-- needs: durations, json, keys, reserved_events, shared_lists, strings, timers, values, work_budget
-- Events an instance sends: to itself, to its parent, to what it invoked, to any other instance; now or later. What goes
-- to others is only collected here: the commit puts it into the outbox, from where it is delivered once.
local sends = {}

local MAX_WAITING = 1000 -- events of one step that wait for their turn
local MAX_MAIL = 1000 -- messages of one step
local MAX_BYTES = 1048576 -- of their data together
local MAX_OUTBOX = 100000 -- messages of a partition that wait; past it nothing more is sent
local MAX_EVENT, MAX_ID, MAX_MACHINE = 400, 200, 64 -- bytes of names
local PROCESSOR = 'http://www.w3.org/TR/scxml/#SCXMLEventProcessor'
local TYPES = { [''] = true, scxml = true, [PROCESSOR] = true }
local MAIL = 60 -- units of work to write one message
local NOBODY = {}
sends.PROCESSOR = PROCESSOR

-- An event of the queues: [name, payload, facts].
function sends.internal(ctx, name, payload, facts)
    if #ctx.internal >= MAX_WAITING then values.fail('more than ' .. MAX_WAITING .. ' raised events wait') end
    shared_lists.append(ctx, 'internal', { name, payload, facts })
end

-- An event of the engine itself: SCXML's platform events.
function sends.platform(ctx, name, message, sendid)
    sends.internal(ctx, name, { message = message }, { type = 'platform', sendid = sendid })
end

function sends.external(ctx, name, payload, facts)
    if #ctx.external >= MAX_WAITING then values.fail('more than ' .. MAX_WAITING .. ' sent events wait') end
    shared_lists.append(ctx, 'external', { name, payload, facts })
end

-- How many machines deep the instance was invoked; 0 for one that no other invoked.
function sends.depth(ctx)
    local parent = sends.parent(ctx)
    return parent and parent.depth or 0
end

-- Why the outbox takes no more; nil when it does.
local function full(ctx)
    if ctx.mail[1] then return nil end -- asked once in a step
    local waiting = redis.pcall('XLEN', keys.outbox(ctx.program.root))
    if type(waiting) ~= 'number' or waiting < MAX_OUTBOX then return nil end
    return waiting .. ' messages wait to be delivered: no more are taken'
end

-- What an instance says of its own accord is bounded; that it ended, or ends others, has to go out.
local function restrict(ctx, body)
    if #ctx.mail >= MAX_MAIL then values.fail('more than ' .. MAX_MAIL .. ' messages in one step') end
    ctx.mail_bytes = (ctx.mail_bytes or 0) + #(body.data or '')
    work_budget.charge(MAIL + #(body.data or '') / 50)
    if ctx.mail_bytes > MAX_BYTES then values.fail('the messages of one step have at most ' .. MAX_BYTES .. ' bytes') end
    local why = full(ctx)
    if why then values.fail(why) end
end

-- A message for the outbox. `kind`: event, start, stop, done, or lost.
function sends.mail(ctx, kind, to, body)
    if kind == 'event' or kind == 'start' then restrict(ctx, body) end
    if kind == 'start' then body.depth = sends.depth(ctx) + 1 end
    body.from = { machine = ctx.program.machine, id = ctx.id }
    shared_lists.append(ctx, 'mail', { kind = kind, machine = to.machine, id = to.id, body = body })
end

-- Throws where a name that was computed is none an event may have.
function sends.check_event(name)
    if name == '' or #name > MAX_EVENT or string.find(name, '[%c ]') or not strings.is_valid(name) then
        values.fail('an event has a name of 1 to ' .. MAX_EVENT .. ' bytes without spaces, not ' .. values.show(name))
    end
    if reserved_events.is_reserved(name) then values.fail(reserved_events.describe(name)) end
end

function sends.address(ctx)
    return '#_scxml_' .. ctx.program.machine .. '/' .. ctx.id
end

function sends.children(ctx)
    if not ctx.children then ctx.children = ctx.raw._children and cjson.decode(ctx.raw._children) or {} end
    return ctx.children
end

function sends.parent(ctx)
    return ctx.raw._parent and cjson.decode(ctx.raw._parent) or nil
end

-- Another instance, or nil for this one. Whether it is there shows when the message is delivered.
local function instance(ctx, machine, id)
    if machine == ctx.program.machine and id == ctx.id then return nil end
    if #machine > MAX_MACHINE or not string.find(machine, '^[%a_][%w_.-]*$') then
        values.fail('no machine can be called ' .. values.show(machine))
    end
    if #id > MAX_ID or not string.find(id, '%S') or string.find(id, '%c') or not strings.is_valid(id) then
        values.fail('no instance can have the id ' .. values.show(id))
    end
    return { machine = machine, id = id }
end

-- Whom a text names: nil for the instance itself, 'internal', or {machine, id, invoke}; NOBODY when it is not there.
local function addressee(ctx, to)
    if to == nil or to == '' then return nil end
    if values.kind(to) == 'object' then
        if type(to.machine) ~= 'string' or type(to.id) ~= 'string' then
            values.fail('a target has a machine and an id, both text, not ' .. values.show(to))
        end
        return instance(ctx, to.machine, to.id)
    end
    values.text(to)
    if to == '#_internal' then return 'internal' end
    if to == '#_parent' then
        local parent = sends.parent(ctx)
        return parent and { machine = parent.machine, id = parent.id, invoke = parent.invoke } or NOBODY
    end
    local machine, id = string.match(to, '^#_scxml_([^/]+)/(.+)$')
    if machine then return instance(ctx, machine, id) end
    if string.sub(to, 1, 8) == '#_scxml_' then return NOBODY end
    if string.sub(to, 1, 2) == '#_' then
        local child = sends.children(ctx)[string.sub(to, 3)]
        return child and { machine = child.machine, id = child.id } or NOBODY
    end
    values.fail('there is no way to send to ' .. values.show(to))
end

-- Hands an event to whoever `to` names, at once. `text`: the payload as JSON, where it was written already. `sends.send` has
-- refused reserved names; a delayed one that an earlier release took may still come here.
function sends.route(ctx, to, event, payload, facts, text)
    if reserved_events.is_reserved(event) then
        return sends.platform(ctx, 'error.communication', reserved_events.describe(event), facts.sendid)
    end
    local whom = addressee(ctx, to)
    if whom == nil then
        facts.type = 'external'
        sends.external(ctx, event, payload, facts)
    elseif whom == 'internal' then
        sends.internal(ctx, event, payload, { type = 'internal', sendid = facts.sendid })
    elseif whom == NOBODY then
        sends.platform(ctx, 'error.communication', 'nobody is there to send to: ' .. values.show(to), facts.sendid)
    else
        text = text or values.encoded('the data of ' .. event, payload)
        local why = ctx.program.raises and full(ctx)
        if why then return sends.platform(ctx, 'error.communication', why, facts.sendid) end
        sends.mail(ctx, 'event', whom, { event = event, data = text, sendid = facts.sendid, invoke = whom.invoke })
    end
end

-- `spec`: event, to, payload, delay ms, id given by the definition or nil, target's type; all evaluated.
function sends.send(ctx, spec)
    sends.check_event(spec.event)
    if not TYPES[spec.type or ''] then values.fail('there is no way to send of the type ' .. values.show(spec.type)) end
    local facts = { sendid = spec.id, origin = sends.address(ctx), origintype = PROCESSOR }
    if not spec.delay or spec.delay == 0 then return sends.route(ctx, spec.to, spec.event, spec.payload, facts, spec.text) end
    if spec.to == '#_internal' then values.fail('an internal event cannot be delayed') end
    addressee(ctx, spec.to) -- a target that is none is told now, not when the time has come
    local text = spec.text or values.encoded('the data of ' .. spec.event, spec.payload)
    local target = spec.to == nil and '' or type(spec.to) == 'string' and spec.to
        or '#_scxml_' .. spec.to.machine .. '/' .. spec.to.id
    timers.arm(ctx, { timers.make_id(ctx), ctx.now + spec.delay, spec.event, 0, spec.handle or spec.id or '', text, target,
        spec.id and 1 or 0 })
end

return sends
