-- needs: births, chart, core, instances, json, keys, payloads, removal, replies, sends, steps, values
-- What happens to a message at the instance it is for. The verdict says how it ended: 'applied', 'ignored' (nobody
-- listened, or it came too late), 'held' for a suspended instance, 'failed' and why; 'fault' when nothing could be
-- written and it has to come again.
local delivering = {}

local MAX_HELD = 1000

local function sender(from)
    return from.machine .. '/' .. from.id
end

-- Keeps a message for a suspended instance, in the order they came.
function delivering.hold(ctx, kind, body)
    local key = keys.held(ctx.program.root, ctx.id)
    if redis.call('LLEN', key) >= MAX_HELD then
        return 'failed', 'the instance is suspended and ' .. MAX_HELD .. ' events wait for it already'
    end
    redis.call('RPUSH', key, cjson.encode({ kind = kind, body = body }))
    return 'held'
end

-- The name an event has for the one it reaches, and what it ends there.
local function event_of(kind, body)
    if kind == 'done' then return 'done.invoke.' .. body.invoke, body.invoke end
    if kind == 'lost' then return 'error.invoke.' .. body.invoke, body.invoke end
    return body.event, nil
end

-- Events of a child count as long as the invocation that made it does (SCXML 6.4.3).
local function stale(ctx, body)
    if not body.invoke then return false end
    local child = ctx.chart and sends.children(ctx)[body.invoke]
    return not child or child.id ~= body.from.id or child.machine ~= body.from.machine
end

local function misfit(ctx, event, payload)
    if not ctx.program.events[event] then return nil end
    if values.kind(payload) ~= 'object' then return "event '" .. event .. "' takes an object, not " .. values.kind(payload) end
    return (payloads.misfit(ctx.program, event, payload))
end

-- The verdict a step's reply amounts to.
local function verdict(reply)
    if reply[1] == replies.OK then return 'applied' end
    if reply[1] == replies.FAULT then return 'fault', reply[2] end
    local seen = cjson.decode(reply[2])
    if seen.why == 'error' then return 'failed', seen.error end
    return 'ignored'
end

-- Sends an event with facts of its own to an instance that is open and may be stepped.
function delivering.tell(ctx, event, payload, actor, facts)
    local noted = values.kind(payload) == 'object' and payloads.note(payload) or '0'
    return verdict(steps.fire(ctx, event, payload, actor, '', noted, nil, facts))
end

local function event(root, kind, id, body, now)
    local ctx, missing = instances.open(root, id, now)
    if not ctx then
        if missing[1] == replies.FAULT then return 'fault', missing[2] end
        return 'failed', 'there is no instance ' .. id
    end
    if ctx.raw._done or stale(ctx, body) then return 'ignored' end
    if ctx.raw._suspended then return delivering.hold(ctx, kind, body) end
    local name, ended = event_of(kind, body)
    local payload = values.plain(json.decode(body.data or 'null'))
    if payload == nil then payload = {} end
    local why = misfit(ctx, name, payload)
    if why then return 'failed', why end
    local from = body.from
    return delivering.tell(ctx, name, payload, sender(from), {
        type = 'external', sendid = body.sendid, invokeid = body.invoke, ended = ended,
        origin = '#_scxml_' .. sender(from), origintype = sends.PROCESSOR,
    })
end

local function start(root, id, body, now)
    local raw = instances.read(root, id)
    local from = body.from
    if raw then
        local parent = raw._parent and cjson.decode(raw._parent)
        if parent and parent.id == from.id and parent.invoke == body.invoke then return 'applied' end
        return 'failed', 'the id ' .. id .. ' is taken'
    end
    local compiled, missing = instances.current(root, '')
    if not compiled then return 'failed', missing[2] or 'the machine is not published' end
    local given = json.decode(body.data or 'null')
    local parent = cjson.encode({ machine = from.machine, id = from.id, invoke = body.invoke })
    local reply = births.create(compiled, id, values.kind(given) == 'object' and given or {}, now, sender(from), '', parent)
    if reply[1] == replies.OK then return 'applied' end
    if reply[1] == replies.FAULT then return 'fault', reply[2] end
    return 'failed', reply[1] == replies.REFUSED and cjson.decode(reply[2]).error or reply[2]
end

local function stop(root, id, body, now)
    local ctx = instances.open(root, id, now)
    if not ctx or not ctx.chart or ctx.raw._done then return 'ignored' end
    local parent = sends.parent(ctx)
    if not parent or parent.id ~= body.from.id or parent.invoke ~= body.invoke then return 'ignored' end
    chart.stop(ctx)
    removal.remove(ctx, sender(body.from), 'the state that invoked it was left', true)
    return 'applied'
end

function delivering.apply(root, kind, id, body, now)
    if kind == 'start' then return start(root, id, body, now) end
    if kind == 'stop' then return stop(root, id, body, now) end
    return event(root, kind, id, body, now)
end

-- Tells the sender that its message could not be delivered: error.invoke.<id> for a child that could not be started, where
-- that is listened for, else error.communication. False when that has to be tried again.
function delivering.bounce(root, kind, body, why, now)
    local ctx = instances.open(root, body.from.id, now)
    if not ctx or ctx.raw._done or kind == 'stop' then return true end
    local name = kind == 'start' and core.listens(ctx, 'error.invoke.' .. body.invoke) and 'error.invoke.' .. body.invoke
        or 'error.communication'
    if ctx.raw._suspended then
        local held = { event = name, data = json.encode({ message = why }), from = body.from, sendid = body.sendid }
        return delivering.hold(ctx, 'event', held) == 'held'
    end
    local facts = { type = 'platform', sendid = body.sendid, invokeid = kind == 'start' and body.invoke or nil,
        ended = kind == 'start' and body.invoke or nil }
    return delivering.tell(ctx, name, { message = why }, 'outbox', facts) ~= 'fault'
end

return delivering
