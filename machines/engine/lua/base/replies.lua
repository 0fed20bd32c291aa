-- needs: chart, guard_explanation, json, permits, work_budget
-- Builds the replies of the functions: arrays that begin with a status. machines/engine/connection/replies.py reads them.
local replies = {}

replies.OK = 'OK'
replies.REFUSED = 'REFUSED'
replies.CONFLICT = 'CONFLICT'
replies.NO_INSTANCE = 'NOINSTANCE'
replies.NO_MACHINE = 'NOMACHINE'
replies.BAD_PAYLOAD = 'BADPAYLOAD'
replies.BAD_ARGUMENT = 'BADARG'
replies.EXISTS = 'EXISTS'
replies.LOST = 'LOST'
replies.FAULT = 'FAULT'
replies.SUSPENDED = 'SUSPENDED'
replies.GONE = 'GONE'
replies.FULL = 'FULL'
replies.OVERFLOW = 'OVERFLOW'
replies.NOT_ALLOWED = 'NOTALLOWED'
replies.APPROVAL = 'APPROVAL'
replies.MOVED = 'MOVED'
replies.MOVING = 'MOVING'
replies.VERSIONS = 'VERSIONS'
replies.STALE = 'STALE'

-- Ends the call with a reply. Only before the first write: nothing is undone.
function replies.send(reply)
    error({ reply = reply }, 0)
end

-- Joins the ids of the transitions taken with spaces.
function replies.join_transitions(ctx)
    local edges = ctx.edges
    if #edges == 1 then return edges[1].id end
    local listed = {}
    for i, edge in ipairs(edges) do listed[i] = edge.id end
    return table.concat(listed, ' ')
end

-- {OK, transitions, replayed, JSON of the instance hash after the step}, then '1' when the step put messages into the outbox,
-- and for a person the states before it: audit and pages name them, and need not read the instance first. One JSON text costs
-- server and client less than an item for each field. A caller may ask for the revision in its place, and a batch for nothing.
function replies.build_instance(ctx)
    local text = ctx.batch and ctx.batch.short and '' or ctx.short and ctx.raw._version or cjson.encode(ctx.raw)
    local has_messages = ctx.messages and ctx.messages[1] and '1'
    if ctx.before then return { replies.OK, replies.join_transitions(ctx), '0', text, has_messages or '', ctx.before } end
    if has_messages then return { replies.OK, replies.join_transitions(ctx), '0', text, has_messages } end
    return { replies.OK, replies.join_transitions(ctx), '0', text }
end

-- Encodes the data as JSON from the stored texts of its fields.
function replies.encode_data(ctx)
    local parts = {}
    for _, field in ipairs(ctx.program.ordered) do
        local raw = ctx.raw[field.name]
        if raw ~= nil then parts[#parts + 1] = field.quoted .. (field.plain and raw or field.as_json(raw)) end
    end
    return '{' .. string.sub(table.concat(parts), 2) .. '}'
end

-- NOTALLOWED: the selected transition is reserved for groups that the person is not in. Names the transition, its targets
-- and the groups.
function replies.build_not_allowed(ctx, event)
    local transition, names = ctx.not_allowed, {}
    for i, target in ipairs(transition.targets) do names[i] = ctx.program.states[target].name end
    return { replies.NOT_ALLOWED, event, transition.id, table.concat(names, ', '), json.encode(transition.allow) }
end

-- APPROVAL: the action needs the approval of a second person. Names the instance as it is and the selected transitions, then
-- the transitions that were approved, if any.
function replies.build_approval(ctx, action)
    local permit = ctx.permit
    local approved = permit.action == action and permit.transitions or ''
    local revision, selected = json.number(ctx.revision), permits.join_selected(ctx)
    return { replies.APPROVAL, action, ctx.id, revision, ctx.program.version, selected, approved }
end

local MAX_NAMES = 1000 -- event names in an explanation

-- Encodes the names of the active leaves.
local function encode_state_names(config)
    if not config then return '[]' end
    if not config.listed then
        local quoted = {}
        for i, name in ipairs(config.names) do quoted[i] = json.quote(name) end
        config.listed = '[' .. table.concat(quoted, ',') .. ']'
    end
    return config.listed
end

local function encode_known_events(program)
    if not program.known_text then
        local known = program.known_list
        program.known_text = json.encode(json.list({ unpack(known, 1, math.min(#known, MAX_NAMES)) }))
    end
    return program.known_text
end

local function encode_outcome(findings)
    if not findings.after then return 'null' end
    local after = findings.after
    return '{"configuration":' .. encode_state_names(after.config)
        .. ',"data":' .. replies.encode_data(after) .. ',"transitions":' .. json.quote(replies.join_transitions(after)) .. '}'
end

-- The parts of an explanation as JSON. `begin_explanation`: up to the revision, of which `states` are the names of the active
-- leaves as JSON; `judge`: up to the candidates; `end_explanation`: behind them.
function replies.begin_explanation(event, config)
    return '{"event":' .. json.quote(event) .. ',"state":' .. encode_state_names(config) .. ',"version":'
end

function replies.judge(taken, why, failure, work, exhausted)
    return ',"taken":' .. (taken and 'true' or 'false')
        .. ',"why":' .. (why and json.quote(why) or 'null')
        .. ',"error":' .. (failure and json.quote(failure) or 'null')
        .. ',"work":' .. json.number(math.ceil(work))
        .. ',"exhausted":' .. (exhausted and 'true' or 'false')
        .. ',"candidates":['
end

function replies.end_explanation(program, omitted, outcome)
    return '],"omitted":' .. omitted .. ',"known":' .. encode_known_events(program) .. ',"outcome":' .. outcome .. '}'
end

-- Encodes the explanation of an event as JSON. `findings.after` is the context after a step that was not committed, where
-- the step succeeded.
local function encode_explanation(ctx, event, findings)
    local candidates = findings.candidates or {}
    work_budget.stop()
    return replies.begin_explanation(event, ctx.config_before)
        .. json.number(ctx.revision)
        .. replies.judge(findings.after, findings.why, findings.error, ctx.work or 0, ctx.exhausted)
        .. table.concat(candidates, ',')
        .. replies.end_explanation(ctx.program, (findings.count or 0) - #candidates, encode_outcome(findings))
end

-- Tells why an event has no transition.
function replies.explain_absence(program, event)
    return (program.open or program.known[event]) and 'no transition' or 'unknown event'
end

-- Finds why no transition was taken: 'unknown event', 'final', 'no transition', 'guards' or 'error'.
local function explain_refusal(ctx, event, failure)
    local findings = { error = failure }
    local known = ctx.program
    work_budget.start_explanation()
    if chart.is_finished(ctx) then
        findings.why = 'final'
        return findings
    end
    findings.candidates, findings.count = guard_explanation.explain_candidates(ctx, event)
    if failure then
        findings.why = 'error'
    elseif findings.count > 0 then
        findings.why = 'guards'
    else
        findings.why = replies.explain_absence(known, event)
    end
    return findings
end

-- Explains as JSON the step that `ctx` took, or could not take, from `before`: the same instance as it was.
function replies.explain_step(ctx, before, event, payload, taken, failure)
    before.payload, before.work, before.exhausted = payload, ctx.work, ctx.exhausted
    local seen = explain_refusal(before, event, failure)
    if taken then
        seen.why, seen.after = nil, ctx
    end
    return encode_explanation(before, event, seen)
end

return replies
