-- needs: chart, commit, fields, json, keys, replies, strings, values
-- Creates instances, for callers and for machines that invoke machines.
local creation = {}

local MAX_ID, MAX_DATA = 200, 65536

function creation.check_id(id)
    if not id or #id == 0 or #id > MAX_ID then return 'an instance id has 1 to ' .. MAX_ID .. ' bytes' end
    if string.find(id, '%c') then return 'an instance id has no control characters' end
    if not string.find(id, '%S') then return 'an instance id is not only spaces' end
    if not strings.is_valid(id) then return 'an instance id is UTF-8' end
    return nil
end

-- Sets the declared initial values, then the caller's. `lenient`: undeclared fields are ignored.
local function fill_data(ctx, data, lenient)
    for _, field in ipairs(ctx.program.ordered) do
        if field.initial then
            fields.put_raw(ctx, field, field.initial)
        end
    end
    for name, value in pairs(data) do
        local field = ctx.program.fields[name]
        if not field and not lenient then
            return "machine '" .. ctx.program.machine .. "' declares no data field '" .. name .. "'", name
        end
        if field then
            local ok, caught = pcall(fields.write, ctx, field, values.to_nil(value))
            if not ok then return chart.describe_failure(ctx, caught), name end
            ctx.given[#ctx.given + 1] = name
        end
    end
    return nil
end
creation.fill_data = fill_data

function creation.parse_data(text)
    if text == '' then return {} end
    if #text > MAX_DATA then return nil, 'the data has ' .. #text .. ' bytes; ' .. MAX_DATA .. ' are allowed' end
    local ok, data = pcall(json.read, text)
    if not ok then return nil, values.describe_error(data) end
    if values.kind_of(data) ~= 'object' then return nil, 'data is a JSON object, not ' .. values.kind_of(data) end
    return data
end

local function make_context(compiled, id, now, parent)
    local raw = { _version = '0', _def = compiled.def, _created = now, _parent = parent }
    local ctx = chart.context(compiled, id, raw, now)
    ctx.key, ctx.is_new, ctx.given = keys.instance(compiled.root, id), true, {}
    return ctx
end

local function build_refusal(ctx, failure)
    return { replies.REFUSED, json.encode({
        event = '(create)', state = json.list(), version = 0, taken = false, why = 'error', error = failure,
        candidates = json.list(), known = ctx.program.known_list, outcome = json.null, work = ctx.work, exhausted = ctx.exhausted,
    }) }
end

local function prepare(ctx, data, lenient)
    local why, field = fill_data(ctx, data, lenient)
    if why then return { replies.BAD_PAYLOAD, why, field } end
    local taken, failure = chart.start(ctx)
    return not taken and build_refusal(ctx, failure) or nil
end

-- Creates an instance with this data, takes its first macrostep and commits it; answers the reply. `parent`: JSON of the
-- instance that invoked it; `clock`: ms of the server's clock where the caller has read it.
function creation.create(compiled, id, data, now, actor, reason, parent, clock)
    local ctx = make_context(compiled, id, now, parent)
    local problem = prepare(ctx, data, parent ~= nil)
    if problem then return problem end
    ctx.by_engine = parent
    local ok, fault = commit.write_step(ctx, '(create)', actor, reason, '0', clock)
    if not ok then return { replies.FAULT, fault } end
    return replies.build_instance(ctx)
end

return creation
