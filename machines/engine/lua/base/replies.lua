-- needs: guard_explanation, json, permits, work_budget
-- What the functions answer: an array that begins with a status word. machines/engine/replies.py reads them.
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

-- Ids of the transitions taken, between spaces.
function replies.edges(ctx)
    local edges = ctx.edges
    if #edges == 1 then return edges[1].id end
    local listed = {}
    for i, edge in ipairs(edges) do listed[i] = edge.id end
    return table.concat(listed, ' ')
end

-- {OK, transitions, replayed, JSON of the instance hash as it now is}, and '1' when the step put messages into the
-- outbox. One text is cheaper, for server and client alike, than an item for each field and value; none is cheaper still,
-- for callers that want it short.
function replies.instance(ctx)
    local text = ctx.batch and ctx.batch.short and '' or cjson.encode(ctx.raw)
    if ctx.mail and ctx.mail[1] then return { replies.OK, replies.edges(ctx), '0', text, '1' } end
    return { replies.OK, replies.edges(ctx), '0', text }
end

-- The data as JSON, put together of what is stored.
local function data_after(ctx)
    local parts = {}
    for _, field in ipairs(ctx.program.ordered) do
        local raw = ctx.raw[field.name]
        if raw ~= nil then parts[#parts + 1] = field.quoted .. (field.plain and raw or field.as_json(raw)) end
    end
    return '{' .. string.sub(table.concat(parts), 2) .. '}'
end

-- What the event selects is not for this person: the transition, where it leads, and the groups it is for.
function replies.barred(ctx, event)
    local transition, names = ctx.barred, {}
    for i, target in ipairs(transition.targets) do names[i] = ctx.program.states[target].name end
    return { replies.NOT_ALLOWED, event, transition.id, table.concat(names, ', '), json.encode(transition.allow) }
end

-- The action takes a second person who has not approved just this: what it would be done to, as it is, and the transitions
-- that the event selects; then those that were approved, where some were.
function replies.alone(ctx, action)
    local permit = ctx.permit
    local approved = permit.action == action and permit.transitions or ''
    return { replies.APPROVAL, action, ctx.id, json.number(ctx.version), ctx.program.version, permits.selected(ctx), approved }
end

local MOST_NAMES = 1000 -- of events, that an explanation lists

local function names_of(ctx, config, state)
    local names = ctx.chart and { unpack(config and config.names or {}) } or { ctx.program.states[state].name }
    return json.encode(json.list(names))
end

local function known_events(program)
    if not program.known_text then
        local known = program.known_list
        program.known_text = json.encode(json.list({ unpack(known, 1, math.min(#known, MOST_NAMES)) }))
    end
    return program.known_text
end

local function outcome_text(seen)
    if not seen.after then return 'null' end
    return '{"configuration":' .. names_of(seen.after, seen.after.config, seen.after.state)
        .. ',"data":' .. data_after(seen.after) .. ',"transitions":' .. json.quote(replies.edges(seen.after)) .. '}'
end

-- The explanation of an event as JSON. `seen.after` is the context after a step that was not committed, if it went through.
function replies.explanation(ctx, event, seen)
    local candidates = seen.candidates or {}
    work_budget.stop()
    return '{"event":' .. json.quote(event)
        .. ',"state":' .. names_of(ctx, ctx.was, ctx.origin)
        .. ',"version":' .. json.number(ctx.version)
        .. ',"taken":' .. (seen.after and 'true' or 'false')
        .. ',"why":' .. json.encode(seen.why)
        .. ',"error":' .. json.encode(seen.error)
        .. ',"work":' .. json.number(math.ceil(ctx.work or 0))
        .. ',"exhausted":' .. (ctx.exhausted and 'true' or 'false')
        .. ',"candidates":[' .. table.concat(candidates, ',') .. ']'
        .. ',"omitted":' .. (seen.count or 0) - #candidates
        .. ',"known":' .. known_events(ctx.program)
        .. ',"outcome":' .. outcome_text(seen) .. '}'
end

-- Why nothing could be taken: 'unknown event', 'final', 'no transition', 'guards' or 'error'.
function replies.refusal(ctx, event, failure)
    local seen = { error = failure }
    local known = ctx.program
    work_budget.start_explanation()
    if ctx.raw._done or not ctx.chart and known.states[ctx.state].final then
        seen.why = 'final'
        return seen
    end
    seen.candidates, seen.count = guard_explanation.candidates(ctx, event)
    if failure then
        seen.why = 'error'
    elseif seen.count > 0 then
        seen.why = 'guards'
    else
        seen.why = (known.open or known.known[event]) and 'no transition' or 'unknown event'
    end
    return seen
end

return replies
