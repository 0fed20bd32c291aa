-- needs: accepted_senders, chart, commit, creation, deletion, due_times, instances, json, keys, partition_log, payloads
-- needs: redirects, replies, reserved_events, sends, steps, traces, values
-- Applies a message to the instance it is for. The outcome is 'applied'; 'ignored' (no transition listens, or it came too
-- late); 'held' for a suspended instance; 'failed' and why; or 'fault' when nothing could be written and the message has to
-- be delivered again.
local delivery = {}

local MAX_HELD = 1000
local ELSEWHERE = { [replies.MOVED] = 'moved', [replies.MOVING] = 'waits' } -- an instance that this partition does not hold
local MAX_DEPTH = 16 -- of machines that invoke each other

-- The text fields of a message, and the field that each kind requires beside its sender.
local TEXTS = { 'event', 'invoke', 'data', 'sendid', 'message', 'traceparent' }
local REQUIRED = { event = 'event', start = 'depth', stop = 'from', done = 'invoke', lost = 'invoke', bounce = 'from' }

local function is_address(of)
    return type(of) == 'table' and type(of.machine) == 'string' and type(of.id) == 'string'
end

-- Checks the body of a message, which may be of a later release; answers nil for one that no engine wrote.
function delivery.check_body(kind, body)
    if type(kind) ~= 'string' or type(body) ~= 'table' or not is_address(body.from) then return nil end
    for _, name in ipairs(TEXTS) do
        if body[name] ~= nil and type(body[name]) ~= 'string' then return nil end
    end
    if body.child ~= nil and not is_address(body.child) then return nil end
    if body.depth ~= nil and type(body.depth) ~= 'number' then return nil end
    if REQUIRED[kind] and body[REQUIRED[kind]] == nil then return nil end
    return body
end

-- Parses and checks the text of a body.
function delivery.parse(kind, text)
    local ok, body = pcall(cjson.decode, text)
    return ok and delivery.check_body(kind, body) or nil
end

local function format_sender(from)
    return from.machine .. '/' .. from.id
end

-- Keeps a message for a suspended instance, in the order of arrival.
function delivery.hold(ctx, kind, body)
    local key = keys.held(ctx.program.root, ctx.id)
    if redis.call('LLEN', key) >= MAX_HELD then
        return 'failed', 'the instance is suspended and ' .. MAX_HELD .. ' events wait for it already'
    end
    redis.call('RPUSH', key, cjson.encode({ kind = kind, body = body }))
    return 'held'
end

-- Events of a child count as long as the invocation that created it is active (SCXML 6.4.3). Events of the child's last step
-- were under way when it ended: they count unless another child has taken its place.
local function is_stale(ctx, body)
    if not body.invoke then return false end
    local child = sends.read_children(ctx)[body.invoke]
    local from = body.child or body.from
    if not child then return not body.last end
    return child.id ~= from.id or child.machine ~= from.machine
end

-- Classifies the reply of a step as an outcome.
local function classify(reply)
    if reply[1] == replies.OK then return 'applied' end
    if reply[1] == replies.FAULT then return 'fault', reply[2] end
    local seen = cjson.decode(reply[2])
    if seen.why == 'error' then return 'failed', seen.error end
    return 'ignored'
end

-- Describes a step to the caller that traces it: event, states before, states after; nil where nobody does.
local function describe_step(event, before, after)
    return traces.current and json.encode(json.list({ event, before, after }))
end

-- `facts`: the fields of the event beside its name and payload.
local function fire(ctx, event, payload, from, facts)
    local history_payload = values.kind_of(payload) == 'object' and payloads.encode_for_history(payload) or payloads.NOT_KEPT
    local before = ctx.raw._state
    local ended, why = classify(steps.fire(ctx, event, payload, format_sender(from), '', history_payload, nil, facts))
    return ended, ended == 'applied' and describe_step(event, before, ctx.raw._state) or why
end

local function find_misfit(ctx, event, payload)
    if not ctx.program.events[event] then return nil end
    if values.kind_of(payload) ~= 'object' then
        return "event '" .. event .. "' takes an object, not " .. values.kind_of(payload)
    end
    return (payloads.find_misfit(ctx.program, event, payload))
end

-- Ends the invocation, whatever its event led to.
local function remove_child(ctx, invoke)
    local children = sends.read_children(ctx)
    if not children[invoke] then return end
    children[invoke], ctx.children_changed = nil, true
    commit.write_bookkeeping(ctx)
end

-- Fires `error.invoke.<id>` for an invocation that ends without done data.
local function fail_invoke(ctx, body, message)
    local facts = { type = 'platform', invokeid = body.invoke, ended = body.invoke }
    local ended, why = fire(ctx, 'error.invoke.' .. body.invoke, { message = message }, body.from, facts)
    if ended ~= 'failed' then return ended, why end
    local again = instances.open(ctx.program.root, ctx.id, ctx.now)
    if again then remove_child(again, body.invoke) end
    return ended, why
end

local function read_payload(body)
    local payload = values.to_nil(json.decode(body.data or 'null'))
    return payload == nil and {} or payload
end

local function make_facts(body)
    return {
        type = 'external', sendid = body.sendid, invokeid = body.invoke,
        origin = '#_scxml_' .. format_sender(body.from), origintype = sends.PROCESSOR,
    }
end

-- Fires the done data of a child. When the actions that take it fail, the invocation has failed.
local function finish_invoke(ctx, body)
    local facts = make_facts(body)
    facts.ended = body.invoke
    local ended, why = fire(ctx, 'done.invoke.' .. body.invoke, read_payload(body), body.from, facts)
    if ended ~= 'failed' then return ended, why end
    return fail_invoke(instances.open(ctx.program.root, ctx.id, ctx.now), body, why)
end

-- A message from the instance to itself is the end of a job that came while it was suspended: all other events to itself
-- stay inside its own step.
local function is_own_job_end(ctx, body)
    return ctx ~= nil and body.from.id == ctx.id and body.from.machine == ctx.program.machine
end

-- Answers why an event is refused, or nil. `sends.check_event` refuses reserved names when they are sent; those that an
-- earlier release let through are refused here.
local function check_sender(root, ctx, body)
    if reserved_events.is_reserved(body.event) and not is_own_job_end(ctx, body) then
        return reserved_events.describe(body.event)
    end
    return accepted_senders.check_event(root, ctx, body)
end

-- Applies an event that an instance sent, or the end of the instance's own job.
local function apply_event(ctx, body)
    local payload = read_payload(body)
    local own = is_own_job_end(ctx, body)
    local why = find_misfit(ctx, body.event, payload)
    if why then return 'failed', why end
    local ended
    ended, why = fire(ctx, body.event, payload, body.from, own and { type = 'external' } or make_facts(body))
    local invoke = own and ended == 'failed' and string.match(body.event, '^done%.invoke%.(.+)$')
    if not invoke then return ended, why end
    return fail_invoke(instances.open(ctx.program.root, ctx.id, ctx.now), { invoke = invoke, from = body.from }, why)
end

-- Applies the notice that a message of this instance could not be delivered: error.invoke.<id> for a child that could not be
-- started, where a transition listens for it, else error.communication.
local function apply_bounce(ctx, body)
    local facts = { type = 'platform', sendid = body.sendid, invokeid = body.invoke, ended = body.invoke }
    local name = body.invoke and chart.has_transition(ctx, 'error.invoke.' .. body.invoke) and 'error.invoke.' .. body.invoke
        or 'error.communication'
    local ended, why = fire(ctx, name, { message = body.message }, body.from, facts)
    if ended == 'failed' and body.invoke then
        remove_child(instances.open(ctx.program.root, ctx.id, ctx.now), body.invoke)
    end
    return ended, why
end

local HANDLERS = {
    event = apply_event,
    done = finish_invoke,
    lost = function(ctx, body) return fail_invoke(ctx, body, 'the instance was deleted') end,
    bounce = apply_bounce,
}

local function apply_to_instance(root, kind, id, body, now)
    local ctx, missing = instances.open(root, id, now)
    local why = kind == 'event' and not (missing and ELSEWHERE[missing[1]]) and check_sender(root, ctx, body)
    if why then return 'failed', why end
    if not ctx then
        if missing[1] == replies.FAULT then return 'fault', missing[2] end
        if ELSEWHERE[missing[1]] then return ELSEWHERE[missing[1]], missing[2] end
        if kind ~= 'event' then return 'ignored' end
        return 'failed', 'there is no instance ' .. id
    end
    if ctx.raw._done or is_stale(ctx, body) then return 'ignored' end
    if ctx.raw._suspended then return delivery.hold(ctx, kind, body) end
    return HANDLERS[kind](ctx, body)
end

local function start_child(root, id, body, now)
    if body.depth > MAX_DEPTH then return 'failed', 'machines invoke each other at most ' .. MAX_DEPTH .. ' deep' end
    local compiled, missing = instances.load_current(root, '', id)
    if not compiled then return 'failed', missing[2] or 'the machine is not published' end
    local bad = accepted_senders.check_start(compiled, body) or creation.check_id(id)
    if bad then return 'failed', bad end
    if instances.read(root, id) then return 'failed', 'the id ' .. id .. ' is taken' end
    local elsewhere = redirects.build(root, id)
    if elsewhere then return ELSEWHERE[elsewhere[1]], elsewhere[2] end
    local given, from = json.decode(body.data or 'null'), body.from
    local parent = cjson.encode({ machine = from.machine, id = from.id, invoke = body.invoke, depth = body.depth })
    given = values.kind_of(given) == 'object' and given or {}
    local reply = creation.create(compiled, id, given, now, format_sender(from), '', parent)
    if reply[1] == replies.OK then
        return 'applied', describe_step('(create)', '', traces.current and cjson.decode(reply[4])._state)
    end
    if reply[1] == replies.FAULT then return 'fault', reply[2] end
    if reply[1] == replies.REFUSED then version_counters.count(root, compiled.version, 'refused') end
    return 'failed', reply[1] == replies.REFUSED and cjson.decode(reply[2]).error or reply[2]
end

local function stop_child(root, id, body, now)
    local ctx, missing = instances.open(root, id, now)
    if not ctx and missing[1] == replies.FAULT then return 'fault', missing[2] end
    if not ctx and ELSEWHERE[missing[1]] then return ELSEWHERE[missing[1]], missing[2] end
    if not ctx or ctx.raw._done then return 'ignored' end
    local parent, from = sends.read_parent(ctx), body.from
    local whose = parent and parent.id == from.id and parent.machine == from.machine and parent.invoke == body.invoke
    if not whose then return 'ignored' end
    chart.stop(ctx)
    deletion.delete(ctx, format_sender(from), 'the state that invoked it was left', true)
    return 'applied'
end

-- `kind`: event (sent by an instance), start and stop (of a child), done and lost (to its parent), bounce (back to the
-- sender of a failed event or start). Throws on a malformed message.
function delivery.apply(root, kind, id, body, now)
    traces.begin(body.traceparent)
    if kind == 'start' then return start_child(root, id, body, now) end
    if kind == 'stop' then return stop_child(root, id, body, now) end
    return apply_to_instance(root, kind, id, body, now)
end

-- Applies a message and never throws: 'fault' is anything that could not be written.
function delivery.try_apply(root, kind, id, body, now)
    local ok, ended, why = pcall(delivery.apply, root, kind, id, body, now)
    if ok then return ended, why end
    return 'fault', type(ended) == 'table' and ended.err or values.describe_error(ended)
end

-- Logs an undeliverable message in the partition of its sender.
function delivery.log_failure(root, message, why)
    pcall(partition_log.append, root, 'kind', 'message', 'name', 'undelivered',
        'data', json.encode({ kind = message.kind, event = message.body.event, machine = message.machine,
            instance = message.id, why = why }),
        'machine', message.body.from.machine, 'instance', message.body.from.id)
end

-- Makes the notice to the sender of a message {kind, machine, id, body} that failed; nil for kinds that need none.
local function make_bounce(message, why)
    local kind, body = message.kind, message.body
    if kind ~= 'event' and kind ~= 'start' then return nil end
    local receiver = { machine = message.machine, id = message.id }
    if receiver.machine == body.from.machine and receiver.id == body.from.id then return nil end
    local notice = { message = why, sendid = body.sendid, from = receiver, traceparent = body.traceparent }
    if kind == 'start' then notice.invoke, notice.child = body.invoke, receiver end
    return notice
end

function delivery.post(root, kind, machine, id, body)
    due_times.note_messages(root)
    redis.call('XADD', keys.outbox(root), '*', 'kind', kind, 'machine', machine, 'id', id, 'body', cjson.encode(body))
end

-- Bounces a failed message to its sender: at once to an instance of this partition that can be written, else by the outbox.
function delivery.bounce(root, message, why, now)
    delivery.log_failure(root, message, why)
    local notice, from = make_bounce(message, why), message.body.from
    if not notice then return end
    local here = not message.body.forwarded
    local outcome = here and delivery.try_apply(root, 'bounce', from.id, notice, now) or 'fault'
    if outcome ~= 'fault' and outcome ~= 'moved' and outcome ~= 'waits' then return end
    delivery.post(root, 'bounce', from.machine, from.id, notice)
end

return delivery
