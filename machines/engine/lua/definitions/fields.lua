-- needs: json, values
-- The declared data fields of a program. Each is one hash field that a person can read with redis-cli: a field of exactly
-- one scalar type as plain text, any other as JSON. An absent field reads as null.
local fields = {}

local MAX_BYTES = 65536 -- of one field, and of all data of an instance
local MAX_NAME = 64
local INDEX_FROM = 16 -- changed fields from which on a set finds them faster

local MAX_EXACT = 2 ^ 53
local type = type

local function is_whole(value)
    return type(value) == 'number' and value % 1 == 0 and value < MAX_EXACT and value > -MAX_EXACT
end

local tests = {
    any = function() return true end,
    integer = is_whole,
    number = function(value) return type(value) == 'number' end,
    string = function(value) return type(value) == 'string' end,
    ciphertext = function(value) return type(value) == 'string' and string.find(value, '^enc:1:[^:]+:.') ~= nil end,
    boolean = function(value) return type(value) == 'boolean' end,
    array = function(value) return values.kind_of(value) == 'array' end,
    object = function(value) return values.kind_of(value) == 'object' end,
    null = function(value) return value == nil or value == json.null end,
}

-- Makes the test for a list of types: a single function in the common case of one type.
function fields.make_test(types)
    if #types == 1 then return tests[types[1]] end
    return function(value) return fields.has_type(value, types) end
end

-- Tells whether the value has one of the named types.
function fields.has_type(value, types)
    for _, name in ipairs(types) do
        if tests[name](value) then return true end
    end
    return false
end

function fields.describe_types(types)
    return table.concat(types, ' or ')
end

local function to_text(value) return value end
local function to_json(value) return json.encode(value) end

local function read_json(raw)
    return values.to_nil(json.decode(raw))
end

local codecs = {
    string = { encode = to_text, decode = to_text, as_json = json.quote },
    integer = { encode = json.number, decode = tonumber, as_json = to_text },
    number = { encode = json.number, decode = tonumber, as_json = to_text },
    boolean = { encode = to_json, decode = function(raw) return raw == 'true' end, as_json = to_text },
    json = { encode = to_json, decode = read_json, as_json = to_text },
}

-- Compiles one declared field; `initial` is the raw first value or nil.
function fields.compile(spec)
    local codec = codecs[spec.type]
    local field = {
        name = spec.name,
        type = spec.type, -- string, integer, number, boolean or json: how it is stored
        types = spec.types or { spec.type },
        decode = codec.decode,
        as_json = codec.as_json,
        quoted = ',' .. json.quote(spec.name) .. ':', -- prefix of its pair in JSON
        opening = '{' .. json.quote(spec.name) .. ':', -- that of the first pair
        plain = codec.as_json == to_text, -- the raw text is valid JSON
        scalar = spec.type ~= 'json',
    }
    local has_type, encode = fields.make_test(field.types), codec.encode
    local function throw_misfit(value)
        if field.types[1] == 'ciphertext' then -- without the value
            values.fail(spec.name .. ' is encrypted: it takes ciphertext, not ' .. values.kind_of(value))
        end
        values.fail(string.format('%s takes %s, not %s (%s)', spec.name, fields.describe_types(field.types),
            values.kind_of(value), values.describe(value)))
    end
    function field.encode(value)
        if not has_type(value) then throw_misfit(value) end
        local raw = encode(value)
        if #raw > MAX_BYTES then values.fail(spec.name .. ' is longer than ' .. MAX_BYTES .. ' bytes') end
        return raw
    end
    -- Numbers, the most common type, need no check of their length.
    if spec.type == 'integer' or spec.type == 'number' then
        function field.encode(value)
            if has_type(value) then return encode(value) end
            return throw_misfit(value)
        end
    end
    if spec.initial then field.initial = field.encode(values.to_nil(json.decode(spec.initial))) end
    return field
end

-- Reads the current value of a field inside a step.
function fields.read(ctx, field)
    local raw = ctx.raw[field.name]
    if raw == nil then return nil end
    return field.decode(raw)
end

local function index_changed(ctx)
    ctx.listed = {}
    for _, field in ipairs(ctx.changed) do ctx.listed[field] = true end
end

-- Adds a field once to the list of changes. Most lists are so short that a linear search is fastest.
local function mark_changed(ctx, field)
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
    if i == INDEX_FROM then index_changed(ctx) end
end

function fields.put_raw(ctx, field, raw)
    local name = field.name
    if ctx.raw[name] ~= raw then
        ctx.raw[name] = raw
        mark_changed(ctx, field)
        if #raw > ctx.program.share then ctx.needs_size_check = true end
    end
end

-- Computes the bytes that one field may have without a check of the whole: its part of the limit for all data.
function fields.compute_share(count)
    return math.floor(MAX_BYTES / math.max(1, count)) - MAX_NAME
end

-- Throws when all data together exceeds its limit. Called when a field exceeds its share.
function fields.check_size(ctx)
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
    fields.put_raw(ctx, field, field.encode(value))
end

function fields.clear(ctx, field)
    if ctx.raw[field.name] ~= nil then
        ctx.raw[field.name] = nil
        mark_changed(ctx, field)
    end
end

return fields
