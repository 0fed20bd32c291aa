-- needs: durations, json, lists, timers, values
-- Events an instance sends: to itself, to its parent, to what it invoked, to any other instance; now or later. What goes
-- to others is only collected here: the commit puts it into the outbox, from where it is delivered once.
local sends = {}

local MAX_WAITING = 1000 -- events of one step that wait for their turn
local MAX_MAIL = 1000 -- messages of one step
local PROCESSOR = 'http://www.w3.org/TR/scxml/#SCXMLEventProcessor'
local TYPES = { [''] = true, scxml = true, [PROCESSOR] = true }
local NOBODY = {}
sends.PROCESSOR = PROCESSOR

-- An event of the queues: [name, payload, facts].
function sends.internal(ctx, name, payload, facts)
    if #ctx.internal >= MAX_WAITING then values.fail('more than ' .. MAX_WAITING .. ' raised events wait') end
    lists.add(ctx, 'internal', { name, payload, facts })
end

-- An event of the engine itself: SCXML's platform events.
function sends.platform(ctx, name, message, sendid)
    sends.internal(ctx, name, { message = message }, { type = 'platform', sendid = sendid })
end

function sends.external(ctx, name, payload, facts)
    if #ctx.external >= MAX_WAITING then values.fail('more than ' .. MAX_WAITING .. ' sent events wait') end
    lists.add(ctx, 'external', { name, payload, facts })
end

-- A message for the outbox. `kind`: event, start, stop or done.
function sends.mail(ctx, kind, to, body)
    if #ctx.mail >= MAX_MAIL then values.fail('more than ' .. MAX_MAIL .. ' messages in one step') end
    body.from = { machine = ctx.program.machine, id = ctx.id }
    lists.add(ctx, 'mail', { kind = kind, machine = to.machine, id = to.id, body = body })
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

-- Whom a text names: nil for the instance itself, 'internal', or {machine, id, invoke}; NOBODY when it is not there.
local function addressee(ctx, to)
    if to == nil or to == '' then return nil end
    if values.kind(to) == 'object' then
        if type(to.machine) ~= 'string' or type(to.id) ~= 'string' then
            values.fail('a target has a machine and an id, both text, not ' .. values.show(to))
        end
        if to.machine == ctx.program.machine and to.id == ctx.id then return nil end
        return { machine = to.machine, id = to.id }
    end
    values.text(to)
    if to == '#_internal' then return 'internal' end
    if to == '#_parent' then
        local parent = sends.parent(ctx)
        return parent and { machine = parent.machine, id = parent.id, invoke = parent.invoke } or NOBODY
    end
    local machine, id = string.match(to, '^#_scxml_([^/]+)/(.+)$')
    if machine then
        if machine == ctx.program.machine and id == ctx.id then return nil end
        return { machine = machine, id = id }
    end
    if string.sub(to, 1, 8) == '#_scxml_' then return NOBODY end
    if string.sub(to, 1, 2) == '#_' then
        local child = sends.children(ctx)[string.sub(to, 3)]
        return child and { machine = child.machine, id = child.id } or NOBODY
    end
    values.fail('there is no way to send to ' .. values.show(to))
end

-- Hands an event to whoever `to` names, at once.
function sends.route(ctx, to, event, payload, facts)
    local whom = addressee(ctx, to)
    if whom == nil then
        facts.type = 'external'
        sends.external(ctx, event, payload, facts)
    elseif whom == 'internal' then
        sends.internal(ctx, event, payload, { type = 'internal', sendid = facts.sendid })
    elseif whom == NOBODY then
        sends.platform(ctx, 'error.communication', 'nobody is there to send to: ' .. values.show(to), facts.sendid)
    else
        local text = values.encoded('the data of ' .. event, payload)
        sends.mail(ctx, 'event', whom, { event = event, data = text, sendid = facts.sendid, invoke = whom.invoke })
    end
end

-- `spec`: event, to, payload, delay ms, id given by the definition or nil, target's type; all evaluated.
function sends.send(ctx, spec)
    if not TYPES[spec.type or ''] then values.fail('there is no way to send of the type ' .. values.show(spec.type)) end
    local facts = { sendid = spec.id, origin = sends.address(ctx), origintype = PROCESSOR }
    if not spec.delay or spec.delay == 0 then return sends.route(ctx, spec.to, spec.event, spec.payload, facts) end
    if spec.to == '#_internal' then values.fail('an internal event cannot be delayed') end
    addressee(ctx, spec.to) -- a target that is none is told now, not when the time has come
    local text = values.encoded('the data of ' .. spec.event, spec.payload)
    local target = spec.to == nil and '' or type(spec.to) == 'string' and spec.to
        or '#_scxml_' .. spec.to.machine .. '/' .. spec.to.id
    timers.arm(ctx, { timers.unique(ctx), ctx.now + spec.delay, spec.event, 0, spec.handle or spec.id or '', text, target,
        spec.id and 1 or 0 })
end

return sends
