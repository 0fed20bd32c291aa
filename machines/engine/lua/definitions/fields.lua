-- needs: json, values
-- The declared data fields of a program. Each is kept as one hash field a person can read in redis-cli:
-- a field of exactly one scalar type as plain text, every other one as JSON. Absent reads as null.
local fields = {}

local MAX_BYTES = 65536 -- of one field, and of all data of an instance
local MAX_NAME = 64
local LONG = 16 -- changes

local MAX_EXACT = 2 ^ 53
local type = type

local function whole(value)
    return type(value) == 'number' and value % 1 == 0 and value < MAX_EXACT and value > -MAX_EXACT
end

local fits = {
    any = function() return true end,
    integer = whole,
    number = function(value) return type(value) == 'number' end,
    string = function(value) return type(value) == 'string' end,
    boolean = function(value) return type(value) == 'boolean' end,
    array = function(value) return values.kind(value) == 'array' end,
    object = function(value) return values.kind(value) == 'object' end,
    null = function(value) return value == nil or value == json.null end,
}

-- The test for a list of types: one function where there is one type, which is nearly always.
function fields.tester(types)
    if #types == 1 then return fits[types[1]] end
    return function(value) return fields.fits(value, types) end
end

-- Does the value have one of the named types?
function fields.fits(value, types)
    for _, name in ipairs(types) do
        if fits[name](value) then return true end
    end
    return false
end

function fields.expected(types)
    return table.concat(types, ' or ')
end

local function to_text(value) return value end
local function to_json(value) return json.encode(value) end

local function read_json(raw)
    return values.plain(json.decode(raw))
end

local codecs = {
    string = { encode = to_text, decode = to_text, as_json = json.quote },
    integer = { encode = json.number, decode = tonumber, as_json = to_text },
    number = { encode = json.number, decode = tonumber, as_json = to_text },
    boolean = { encode = to_json, decode = function(raw) return raw == 'true' end, as_json = to_text },
    json = { encode = to_json, decode = read_json, as_json = to_text },
}

-- The codec of one declared field; `initial` is its first raw value or nil.
function fields.compile(spec)
    local codec = codecs[spec.type]
    local field = {
        name = spec.name,
        types = spec.types or { spec.type },
        decode = codec.decode,
        as_json = codec.as_json,
        quoted = ',' .. json.quote(spec.name) .. ':', -- as a history entry lists it, comma first
        plain = codec.as_json == to_text, -- its raw text is JSON already
        scalar = spec.type ~= 'json',
    }
    local fitting, encode = fields.tester(field.types), codec.encode
    local function misfit(value)
        values.fail(string.format('%s takes %s, not %s (%s)', spec.name, fields.expected(field.types),
            values.kind(value), values.show(value)))
    end
    function field.encode(value)
        if not fitting(value) then misfit(value) end
        local raw = encode(value)
        if #raw > MAX_BYTES then values.fail(spec.name .. ' is longer than ' .. MAX_BYTES .. ' bytes') end
        return raw
    end
    -- A number has no length to check, and is what steps write most.
    if spec.type == 'integer' or spec.type == 'number' then
        function field.encode(value)
            if fitting(value) then return encode(value) end
            return misfit(value)
        end
    end
    if spec.initial then field.initial = field.encode(values.plain(json.decode(spec.initial))) end
    return field
end

-- The current value of a field inside a step.
function fields.read(ctx, field)
    local raw = ctx.raw[field.name]
    if raw == nil then return nil end
    return field.decode(raw)
end

local function index_changes(ctx)
    ctx.listed = {}
    for _, field in ipairs(ctx.changed) do ctx.listed[field] = true end
end

-- Each field stands once in the list of changes. Nearly all lists are so short that looking through them is cheapest.
local function touch(ctx, field)
    local changed, listed, i = ctx.changed, ctx.listed, 1
    if listed then
        if listed[field] then return end
        listed[field], i = true, #changed + 1
    else
        while changed[i] do
            if changed[i] == field then return end
            i = i + 1
        end
    end
    changed[i] = field
    if i == LONG then index_changes(ctx) end
end

function fields.put(ctx, field, raw)
    local name = field.name
    if ctx.raw[name] ~= raw then
        ctx.raw[name] = raw
        touch(ctx, field)
        if #raw > ctx.program.share then ctx.heavy = true end
    end
end

-- What one field may take without anyone having to look at the others: its part of the bytes all data may have.
function fields.share(count)
    return math.floor(MAX_BYTES / math.max(1, count)) - MAX_NAME
end

-- Throws when all data together has grown past its limit. Called where a field took more than its share.
function fields.weigh(ctx)
    local bytes = 0
    for _, field in ipairs(ctx.program.ordered) do
        local raw = ctx.raw[field.name]
        if raw then bytes = bytes + #field.name + #raw end
    end
    if bytes > MAX_BYTES then
        values.fail('the data of an instance has at most ' .. MAX_BYTES .. ' bytes, not ' .. bytes)
    end
end

function fields.write(ctx, field, value)
    fields.put(ctx, field, field.encode(value))
end

function fields.clear(ctx, field)
    if ctx.raw[field.name] ~= nil then
        ctx.raw[field.name] = nil
        touch(ctx, field)
    end
end

return fields
