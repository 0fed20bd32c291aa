-- needs: accepted_senders, chart, commit, core, creation, deletion, due_times, instances, json, keys, partition_log
-- needs: payloads, replies, reserved_events, sends, steps, values
-- What happens to a message at the instance it is for. The verdict says how it ended: 'applied', 'ignored' (nobody
-- listened, or it came too late), 'held' for a suspended instance, 'failed' and why; 'fault' when nothing could be
-- written and it has to come again.
local delivery = {}

local MAX_HELD = 1000
local MAX_DEPTH = 16 -- machines that invoke each other

-- What a message says beside its sender, and what it may not lack.
local TEXTS = { 'event', 'invoke', 'data', 'sendid', 'message' }
local NEEDS = { event = 'event', start = 'depth', stop = 'from', done = 'invoke', lost = 'invoke', bounce = 'from' }

local function names_instance(of)
    return type(of) == 'table' and type(of.machine) == 'string' and type(of.id) == 'string'
end

-- The body of a message of that kind, which may be of a later release; nil where it is none that an engine wrote.
function delivery.body(kind, body)
    if type(kind) ~= 'string' or type(body) ~= 'table' or not names_instance(body.from) then return nil end
    for _, name in ipairs(TEXTS) do
        if body[name] ~= nil and type(body[name]) ~= 'string' then return nil end
    end
    if body.child ~= nil and not names_instance(body.child) then return nil end
    if body.depth ~= nil and type(body.depth) ~= 'number' then return nil end
    if NEEDS[kind] and body[NEEDS[kind]] == nil then return nil end
    return body
end

-- The same of a text.
function delivery.read(kind, text)
    local ok, body = pcall(cjson.decode, text)
    return ok and delivery.body(kind, body) or nil
end

local function sender(from)
    return from.machine .. '/' .. from.id
end

-- Keeps a message for a suspended instance, in the order they came.
function delivery.hold(ctx, kind, body)
    local key = keys.held(ctx.program.root, ctx.id)
    if redis.call('LLEN', key) >= MAX_HELD then
        return 'failed', 'the instance is suspended and ' .. MAX_HELD .. ' events wait for it already'
    end
    redis.call('RPUSH', key, cjson.encode({ kind = kind, body = body }))
    return 'held'
end

-- Events of a child count as long as the invocation that made it does (SCXML 6.4.3). What its last step sent was on its
-- way when it ended, and counts unless another child has taken its place.
local function stale(ctx, body)
    if not body.invoke then return false end
    local child = ctx.chart and sends.children(ctx)[body.invoke]
    local from = body.child or body.from
    if not child then return not body.last end
    return child.id ~= from.id or child.machine ~= from.machine
end

-- The verdict a step's reply amounts to.
local function verdict(reply)
    if reply[1] == replies.OK then return 'applied' end
    if reply[1] == replies.FAULT then return 'fault', reply[2] end
    local seen = cjson.decode(reply[2])
    if seen.why == 'error' then return 'failed', seen.error end
    return 'ignored'
end

-- `facts`: what the event is beside its name and payload.
local function tell(ctx, event, payload, from, facts)
    local noted = values.kind(payload) == 'object' and payloads.note(payload) or '0'
    return verdict(steps.fire(ctx, event, payload, sender(from), '', noted, nil, facts))
end

local function misfit(ctx, event, payload)
    if not ctx.program.events[event] then return nil end
    if values.kind(payload) ~= 'object' then return "event '" .. event .. "' takes an object, not " .. values.kind(payload) end
    return (payloads.misfit(ctx.program, event, payload))
end

-- The invocation is over, however its end was taken.
local function forget(ctx, invoke)
    local children = ctx.chart and sends.children(ctx) or {}
    if not children[invoke] then return end
    children[invoke], ctx.children_changed = nil, true
    commit.keep(ctx)
end

-- `error.invoke.<id>`, for whatever reason there will be no done data.
local function lost(ctx, body, message)
    local facts = { type = 'platform', invokeid = body.invoke, ended = body.invoke }
    local ended, why = tell(ctx, 'error.invoke.' .. body.invoke, { message = message }, body.from, facts)
    if ended ~= 'failed' then return ended, why end
    local again = instances.open(ctx.program.root, ctx.id, ctx.now)
    if again then forget(again, body.invoke) end
    return ended, why
end

local function payload_of(body)
    local payload = values.plain(json.decode(body.data or 'null'))
    return payload == nil and {} or payload
end

local function facts_of(body)
    return {
        type = 'external', sendid = body.sendid, invokeid = body.invoke,
        origin = '#_scxml_' .. sender(body.from), origintype = sends.PROCESSOR,
    }
end

-- A child's done data. Where the actions that take it fail, the invocation has failed.
local function done(ctx, body)
    local facts = facts_of(body)
    facts.ended = body.invoke
    local ended, why = tell(ctx, 'done.invoke.' .. body.invoke, payload_of(body), body.from, facts)
    if ended ~= 'failed' then return ended, why end
    return lost(instances.open(ctx.program.root, ctx.id, ctx.now), body, why)
end

-- An instance reaches itself through its own queues: a message from itself is the end of a job that came while it was
-- suspended.
local function own_end(ctx, body)
    return ctx ~= nil and body.from.id == ctx.id and body.from.machine == ctx.program.machine
end

-- Why an event is not for its instance, or nil. `sends.check_event` has refused reserved names; those that an earlier
-- release took end here.
local function unwanted(root, ctx, body)
    if reserved_events.is(body.event) and not own_end(ctx, body) then return reserved_events.why(body.event) end
    return accepted_senders.of_event(root, ctx, body)
end

-- What an instance sent of its own accord, or the end of its own job.
local function event(ctx, body)
    local payload = payload_of(body)
    local own = own_end(ctx, body)
    local why = misfit(ctx, body.event, payload)
    if why then return 'failed', why end
    local ended
    ended, why = tell(ctx, body.event, payload, body.from, own and { type = 'external' } or facts_of(body))
    local invoke = own and ended == 'failed' and string.match(body.event, '^done%.invoke%.(.+)$')
    if not invoke then return ended, why end
    return lost(instances.open(ctx.program.root, ctx.id, ctx.now), { invoke = invoke, from = body.from }, why)
end

-- A message of this instance could not be delivered: error.invoke.<id> for a child that could not be started, where that is
-- listened for, else error.communication.
local function bounce(ctx, body)
    local facts = { type = 'platform', sendid = body.sendid, invokeid = body.invoke, ended = body.invoke }
    local name = body.invoke and core.listens(ctx, 'error.invoke.' .. body.invoke) and 'error.invoke.' .. body.invoke
        or 'error.communication'
    local ended, why = tell(ctx, name, { message = body.message }, body.from, facts)
    if ended == 'failed' and body.invoke then
        forget(instances.open(ctx.program.root, ctx.id, ctx.now), body.invoke)
    end
    return ended, why
end

local EVENTS = {
    event = event,
    done = done,
    lost = function(ctx, body) return lost(ctx, body, 'the instance was deleted') end,
    bounce = bounce,
}

local function take(root, kind, id, body, now)
    local ctx, missing = instances.open(root, id, now)
    local why = kind == 'event' and unwanted(root, ctx, body)
    if why then return 'failed', why end
    if not ctx then
        if missing[1] == replies.FAULT then return 'fault', missing[2] end
        if kind ~= 'event' then return 'ignored' end
        return 'failed', 'there is no instance ' .. id
    end
    if ctx.raw._done or stale(ctx, body) then return 'ignored' end
    if ctx.raw._suspended then return delivery.hold(ctx, kind, body) end
    return EVENTS[kind](ctx, body)
end

local function start(root, id, body, now)
    if body.depth > MAX_DEPTH then return 'failed', 'machines invoke each other at most ' .. MAX_DEPTH .. ' deep' end
    local compiled, missing = instances.current(root, '')
    if not compiled then return 'failed', missing[2] or 'the machine is not published' end
    local bad = accepted_senders.of_start(compiled, body) or creation.bad_id(id)
    if bad then return 'failed', bad end
    if instances.read(root, id) then return 'failed', 'the id ' .. id .. ' is taken' end
    local given, from = json.decode(body.data or 'null'), body.from
    local parent = cjson.encode({ machine = from.machine, id = from.id, invoke = body.invoke, depth = body.depth })
    local reply = creation.create(compiled, id, values.kind(given) == 'object' and given or {}, now, sender(from), '', parent)
    if reply[1] == replies.OK then return 'applied' end
    if reply[1] == replies.FAULT then return 'fault', reply[2] end
    return 'failed', reply[1] == replies.REFUSED and cjson.decode(reply[2]).error or reply[2]
end

local function stop(root, id, body, now)
    local ctx, missing = instances.open(root, id, now)
    if not ctx and missing[1] == replies.FAULT then return 'fault', missing[2] end
    if not ctx or not ctx.chart or ctx.raw._done then return 'ignored' end
    local parent, from = sends.parent(ctx), body.from
    local whose = parent and parent.id == from.id and parent.machine == from.machine and parent.invoke == body.invoke
    if not whose then return 'ignored' end
    chart.stop(ctx)
    commit.effects(ctx) -- what its exit actions asked for outlives it
    deletion.remove(ctx, sender(from), 'the state that invoked it was left', true)
    return 'applied'
end

-- `kind`: event (what an instance sent), start and stop (of a child), done and lost (to its parent), bounce (back to the
-- sender of an event or start that failed). Throws what makes a message none.
function delivery.apply(root, kind, id, body, now)
    if kind == 'start' then return start(root, id, body, now) end
    if kind == 'stop' then return stop(root, id, body, now) end
    return take(root, kind, id, body, now)
end

-- The same, for sure: what could not be written is 'fault'.
function delivery.attempt(root, kind, id, body, now)
    local ok, ended, why = pcall(delivery.apply, root, kind, id, body, now)
    if ok then return ended, why end
    return 'fault', type(ended) == 'table' and ended.err or values.message(ended)
end

-- What could not be delivered stands in the log of its sender's partition.
function delivery.log(root, message, why)
    pcall(partition_log.write, root, 'kind', 'message', 'name', 'undelivered',
        'data', json.encode({ kind = message.kind, event = message.body.event, machine = message.machine,
            instance = message.id, why = why }),
        'machine', message.body.from.machine, 'instance', message.body.from.id)
end

-- What its sender is told of a message {kind, machine, id, body} that failed; nil where nobody waits to hear of it.
local function answer(message, why)
    local kind, body = message.kind, message.body
    if kind ~= 'event' and kind ~= 'start' then return nil end
    local whom = { machine = message.machine, id = message.id }
    if whom.machine == body.from.machine and whom.id == body.from.id then return nil end
    local told = { message = why, sendid = body.sendid, from = whom }
    if kind == 'start' then told.invoke, told.child = body.invoke, whom end
    return told
end

function delivery.post(root, kind, machine, id, body)
    due_times.mail(root)
    redis.call('XADD', keys.outbox(root), '*', 'kind', kind, 'machine', machine, 'id', id, 'body', cjson.encode(body))
end

-- Tells the sender of a message that failed, at once where that is an instance of this partition and can be written now.
function delivery.refuse(root, message, why, now)
    delivery.log(root, message, why)
    local told, from = answer(message, why), message.body.from
    if not told then return end
    local here = not message.body.forwarded
    if here and delivery.attempt(root, 'bounce', from.id, told, now) ~= 'fault' then return end
    delivery.post(root, 'bounce', from.machine, from.id, told)
end

return delivery
