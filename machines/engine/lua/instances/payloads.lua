-- needs: fields, json, values
-- Event payloads: parses them strictly, checks them against the definition, encodes them for the history.
local payloads = {}

local MAX_BYTES = 65536
local MAX_HISTORY = 1024
local MAX_SOURCE = 8 * MAX_HISTORY -- a longer text is not encoded again to see whether it would fit
payloads.NOT_KEPT = '{}' -- in a history: there was a payload, and it was too long or no object
local NONE = {}
local CIPHERTEXT = { 'ciphertext' }
local match = string.match

local function decode(text)
    local payload = json.read(text)
    if values.kind_of(payload) ~= 'object' then values.fail('a payload is a JSON object, not ' .. values.kind_of(payload)) end
    return payload
end

-- Parses a payload; answers it and its text for the history, or nil and a sentence.
function payloads.parse(text)
    if text == '' or text == '{}' then return NONE, '0' end
    -- The shape of most events, one field of plain ASCII text, needs no decoder.
    local name, value = match(text, '^{"([%w_]+)": ?"([]-~#-[ !]*)"}$')
    if name and #text <= MAX_HISTORY then return { [name] = value }, text end
    if #text > MAX_BYTES then return nil, 'the payload has ' .. #text .. ' bytes; ' .. MAX_BYTES .. ' are allowed' end
    local ok, payload = pcall(decode, text)
    if ok then return payload, #text > MAX_SOURCE and payloads.NOT_KEPT or payloads.encode_for_history(payload) end
    return nil, values.describe_error(payload)
end

local function list_names(declared)
    local listed = {}
    for name in pairs(declared) do listed[#listed + 1] = name end
    table.sort(listed)
    return #listed > 0 and table.concat(listed, ', ') or 'none'
end

local function find_plain(marked, payload)
    for name in pairs(marked) do
        local value = payload[name]
        if value ~= nil and value ~= json.null and not fields.has_type(value, CIPHERTEXT) then
            return string.format("field '%s' is encrypted: it takes ciphertext, not %s", name, values.kind_of(value)), name
        end
    end
    return nil
end

-- Answers nil when the payload fits the declaration of its event; else a sentence and the field it is about.
function payloads.find_misfit(program, event, payload)
    local declared = program.events[event]
    if not declared then
        if program.encrypted then return find_plain(program.encrypted, payload) end
        return nil
    end
    for name, value in pairs(payload) do
        local spec = declared[name]
        if not spec then
            return "event '" .. event .. "' has no field '" .. name .. "'; its fields: " .. list_names(declared), name
        end
        if not spec.fits(value) then
            return string.format("field '%s' of event '%s' takes %s, not %s", name, event,
                fields.describe_types(spec.types), values.kind_of(value)), name
        end
    end
    local required = program.required[event]
    for i = 1, #required do
        local name = required[i]
        if payload[name] == nil then return "event '" .. event .. "' needs the field '" .. name .. "'", name end
    end
    return nil
end

-- Encodes a payload for the history: compact JSON, 0 for nothing, NOT_KEPT for too much.
function payloads.encode_for_history(payload)
    if next(payload) == nil then return '0' end
    -- Encoding may exceed the work left to the step: this is too much for the history, too.
    local ok, text = pcall(json.encode, payload)
    return ok and #text <= MAX_HISTORY and text or payloads.NOT_KEPT
end

-- Parses the result of a job: any JSON, nil for ''; nil and a sentence when malformed. It becomes a field of a payload, one
-- level deeper.
function payloads.parse_result(text)
    if text == '' then return nil end
    if #text > MAX_BYTES then return nil, 'a result has at most ' .. MAX_BYTES .. ' bytes, not ' .. #text end
    local ok, result = pcall(json.read, text, 2)
    if not ok then return nil, values.describe_error(result) end
    return result
end

return payloads
