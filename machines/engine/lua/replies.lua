-- needs: explain, json
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

local function data_after(ctx)
    local data = {}
    for _, field in ipairs(ctx.program.ordered) do
        local raw = ctx.raw[field.name]
        if raw ~= nil then
            local value = field.decode(raw)
            data[field.name] = value == nil and json.null or value
        end
    end
    return data
end

-- A value nested as deep as data may be still has its place inside an explanation.
local UNCOUNTED = -64

local function names_of(ctx, config, state)
    return json.list(ctx.chart and { unpack(config and config.names or {}) } or { ctx.program.states[state].name })
end

-- The explanation of an event as JSON. `outcome` is the context after a step that was not committed, if it went through.
function replies.explanation(ctx, event, seen)
    return json.encode({
        event = event,
        state = names_of(ctx, ctx.was, ctx.origin),
        version = ctx.version,
        taken = seen.after ~= nil,
        why = seen.why or json.null,
        error = seen.error or json.null,
        candidates = seen.candidates or json.list(),
        known = ctx.program.known_list,
        outcome = seen.after and {
            configuration = names_of(ctx, seen.after.config, seen.after.state),
            data = data_after(seen.after),
            transitions = replies.edges(seen.after),
        } or json.null,
    }, UNCOUNTED)
end

-- Why nothing could be taken: 'unknown event', 'final', 'no transition', 'guards' or 'error'.
function replies.refusal(ctx, event, failure)
    local seen = { error = failure }
    local known = ctx.program
    if ctx.raw._done or not ctx.chart and known.states[ctx.state].final then
        seen.why = 'final'
        return seen
    end
    seen.candidates = explain.candidates(ctx, event)
    if failure then
        seen.why = 'error'
    elseif #seen.candidates > 0 then
        seen.why = 'guards'
    else
        seen.why = (known.open or known.known[event]) and 'no transition' or 'unknown event'
    end
    return seen
end

return replies
