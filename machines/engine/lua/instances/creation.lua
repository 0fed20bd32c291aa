-- needs: chart, commit, core, fields, json, keys, replies, strings, values
-- Making instances: for whoever asks, and for machines that invoke machines.
local creation = {}

local MAX_ID, MAX_DATA = 200, 65536

function creation.bad_id(id)
    if not id or #id == 0 or #id > MAX_ID then return 'an instance id has 1 to ' .. MAX_ID .. ' bytes' end
    if string.find(id, '%c') then return 'an instance id has no control characters' end
    if not string.find(id, '%S') then return 'an instance id is not only spaces' end
    if not strings.is_valid(id) then return 'an instance id is UTF-8' end
    return nil
end

-- Declared initial values, then the caller's. `lenient`: what is not declared is left out.
local function fill(ctx, data, lenient)
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
            local ok, caught = pcall(fields.write, ctx, field, values.plain(value))
            if not ok then return chart.failure(ctx, caught), name end
            ctx.given[#ctx.given + 1] = name
        end
    end
    return nil
end

function creation.parse(text)
    if text == '' then return {} end
    if #text > MAX_DATA then return nil, 'the data has ' .. #text .. ' bytes; ' .. MAX_DATA .. ' are allowed' end
    local ok, data = pcall(json.read, text)
    if not ok then return nil, values.message(data) end
    if values.kind(data) ~= 'object' then return nil, 'data is a JSON object, not ' .. values.kind(data) end
    return data
end

local function born(compiled, id, now, parent)
    local raw = { _version = '0', _def = compiled.def, _created = now, _parent = parent }
    local ctx = core.context(compiled, id, raw, now)
    ctx.key, ctx.born, ctx.given = keys.instance(compiled.root, id), true, {}
    return ctx
end

local function refused(ctx, failure)
    return { replies.REFUSED, json.encode({
        event = '(create)', state = json.list(), version = 0, taken = false, why = 'error', error = failure,
        candidates = json.list(), known = ctx.program.known_list, outcome = json.null, work = ctx.work, exhausted = ctx.exhausted,
    }) }
end

local function settle(ctx, data, lenient)
    local why, field = fill(ctx, data, lenient)
    if why then return { replies.BAD_PAYLOAD, why, field } end
    local ok, failure = core.start(ctx)
    if not ok then return refused(ctx, failure) end
    if ctx.chart then return nil end
    local ready, caught = pcall(commit.prepare, ctx)
    if not ready then return refused(ctx, chart.failure(ctx, caught)) end
    return nil
end

-- A new instance with this data, its first macrostep taken and committed; the reply. `parent`: JSON of who invoked it.
function creation.create(compiled, id, data, now, actor, reason, parent)
    local ctx = born(compiled, id, now, parent)
    local problem = settle(ctx, data, parent ~= nil)
    if problem then return problem end
    ctx.own = parent
    local ok, fault = commit.step(ctx, '(create)', actor, reason, '0')
    if not ok then return { replies.FAULT, fault } end
    return replies.build_instance(ctx)
end

return creation
