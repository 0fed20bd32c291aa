-- needs: fields, json, values
-- Event payloads: parsed strictly, held against what the definition declares, written to the history as JSON.
local payloads = {}

local MAX_BYTES = 65536
local MAX_NOTED = 1024
local MAX_SOURCE = 8 * MAX_NOTED -- what is longer is not written anew to see whether it would fit
local NONE = {}
local match = string.match

local function decode(text)
    local payload = json.read(text)
    if values.kind(payload) ~= 'object' then values.fail('a payload is a JSON object, not ' .. values.kind(payload)) end
    return payload
end

-- The payload of a text, and that text where it may stand in the history as it is; nil and a sentence where it is none.
function payloads.parse(text)
    if text == '' or text == '{}' then return NONE, '0' end
    -- The shape nearly every event has: one field with plain ASCII text. Anything else takes the strict road.
    local name, value = match(text, '^{"([%w_]+)": ?"([^"\\%c\128-\255]*)"}$')
    if name and #text <= MAX_NOTED then return { [name] = value }, text end
    if #text > MAX_BYTES then return nil, 'the payload has ' .. #text .. ' bytes; ' .. MAX_BYTES .. ' are allowed' end
    local ok, payload = pcall(decode, text)
    if ok then return payload, #text > MAX_SOURCE and '0' or payloads.note(payload) end
    return nil, values.message(payload)
end

local function names(declared)
    local listed = {}
    for name in pairs(declared) do listed[#listed + 1] = name end
    table.sort(listed)
    return #listed > 0 and table.concat(listed, ', ') or 'none'
end

-- Nothing when the payload fits the declaration of its event; else a sentence and the field it is about.
function payloads.misfit(program, event, payload)
    local declared = program.events[event]
    if not declared then return nil end
    for name, value in pairs(payload) do
        local spec = declared[name]
        if not spec then return "event '" .. event .. "' has no field '" .. name .. "'; its fields: " .. names(declared), name end
        if not spec.fits(value) then
            return string.format("field '%s' of event '%s' takes %s, not %s", name, event,
                fields.describe_types(spec.types), values.kind(value)), name
        end
    end
    local required = program.required[event]
    for i = 1, #required do
        local name = required[i]
        if payload[name] == nil then return "event '" .. event .. "' needs the field '" .. name .. "'", name end
    end
    return nil
end

-- For the history: compact JSON, or 0 where there is nothing or too much to keep.
function payloads.note(payload)
    if next(payload) == nil then return '0' end
    -- What takes more work to write than is left to the step is too much to keep, too.
    local ok, text = pcall(json.encode, payload)
    return ok and #text <= MAX_NOTED and text or '0'
end

-- What a job ended with: any JSON, nil for ''; nil and a sentence where it is none. It becomes a field of the payload that
-- says so, one level further in.
function payloads.result(text)
    if text == '' then return nil end
    if #text > MAX_BYTES then return nil, 'a result has at most ' .. MAX_BYTES .. ' bytes, not ' .. #text end
    local ok, result = pcall(json.read, text, 2)
    if not ok then return nil, values.message(result) end
    return result
end

return payloads
