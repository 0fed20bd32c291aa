-- needs: fields, json, values
-- Converts the data of an instance from the fields of one version to those of another. A field of the same types keeps its
-- text byte for byte; any other is read, converted without loss, and checked like every value that is written.
local data_conversion = {}

local KEPT = '_k:' -- begins the bookkeeping field of a data field that a version does not have
local MAX_TEXT = 200
data_conversion.KEPT = KEPT

local function are_equal_types(a, b)
    return table.concat(a.types, ' ') == table.concat(b.types, ' ')
end

local function to_number(value)
    if type(value) == 'string' and #value <= 40 then return tonumber(string.match(value, '^%s*(-?[%d.]+[eE]?[-+]?%d*)%s*$')) end
    if type(value) == 'boolean' then return value and 1 or 0 end
    return type(value) == 'number' and value or nil
end

local converters = {
    integer = function(value)
        local number = to_number(value)
        return number and number % 1 == 0 and number or nil
    end,
    number = to_number,
    string = function(value)
        if type(value) == 'number' then return json.number(value) end
        if type(value) == 'boolean' then return tostring(value) end
        return type(value) == 'string' and value or nil
    end,
    boolean = function(value)
        if value == 'true' or value == 1 then return true end
        if value == 'false' or value == 0 then return false end
        return nil
    end,
}

-- Converts a value to the first of the types that takes it without loss; nil when none does.
local function convert(value, types)
    for _, name in ipairs(types) do
        local made
        if converters[name] then made = converters[name](value) end
        if made ~= nil then return made end
    end
    return nil
end

-- Leaves out the value that an error ends with, in brackets: reasons are shown to people who may not see the data, and
-- instances with the same fault are of one class.
local function without_value(why)
    return (string.gsub(why, ' %(.*$', ''))
end

-- Answers the text of a value for a field; nil and why when the field cannot hold it. A null is no text at all.
local function encode(field, value)
    if value == nil and fields.has_type(nil, field.types) then return nil end
    local ok, text = pcall(field.encode, value)
    if ok then return text end
    local made = value ~= nil and convert(value, field.types)
    if made ~= nil and made ~= false or made == false and fields.has_type(false, field.types) then
        ok, text = pcall(field.encode, made)
        if ok then return text end
    end
    return nil, without_value(values.describe_error(text))
end

-- Plans the copies of fields: {field of the new version, field of the old version or nil, same types}. `computed`: names of
-- fields that an expression gives.
function data_conversion.plan(old, new, sources, computed)
    local copies, can_fail, taken = {}, false, {}
    for _, field in ipairs(new.ordered) do
        if not computed[field.name] then
            local from = old.fields[sources[field.name] or '']
            local same = from and are_equal_types(from, field)
            if from then taken[from.name] = true end
            if from and not same then can_fail = true end
            copies[#copies + 1] = { field = field, from = from, same = same }
        end
    end
    local removed = {}
    for _, field in ipairs(old.ordered) do
        if not taken[field.name] then removed[#removed + 1] = field.name end
    end
    return copies, removed, can_fail
end

-- Answers the text of one field after the copy; nil and why when it cannot be converted.
local function copy(one, before)
    local field, from = one.field, one.from
    if not from then
        local kept = before[KEPT .. field.name]
        return kept or field.initial
    end
    local raw = before[from.name]
    if raw == nil or one.same then return raw end
    local text, why = encode(field, from.decode(raw))
    if why then return nil, "field '" .. from.name .. "': " .. string.sub(why, 1, MAX_TEXT) end
    return text
end

-- Writes the data of the new version into `after`, from `before` and the computed values; nil, or why it is refused and its
-- code. `keeps`: fields without a place are kept as bookkeeping.
function data_conversion.apply(source, ctx, before, after, keeps)
    for _, one in ipairs(source.copies) do
        local text, why = copy(one, before)
        if why then return why, 'SB613' end
        after[one.field.name] = text
        if not one.from then after[KEPT .. one.field.name] = nil end
    end
    for _, one in ipairs(source.computed) do
        local ok, value = pcall(one.compute, ctx)
        if not ok then
            return "the expression of '" .. one.field.name .. "': " .. values.describe_error(value), 'SB614'
        end
        local text, why = encode(one.field, values.to_nil(value))
        if why then return "the expression of '" .. one.field.name .. "': " .. why, 'SB614' end
        after[one.field.name] = text
    end
    for _, name in ipairs(source.removed) do
        if keeps and before[name] ~= nil then after[KEPT .. name] = before[name] end
    end
    return nil
end

-- Lists what becomes of the data, a sentence for each field that changes; no sentence holds a value.
function data_conversion.describe(source, keeps)
    local found, computed = {}, {}
    for _, one in ipairs(source.computed) do
        found[#found + 1], computed[one.field.name] = one.field.name .. ' is computed', true
    end
    for _, one in ipairs(source.copies) do
        local name = one.field.name
        if not one.from then
            found[#found + 1] = name .. ' is new'
        elseif not one.same then
            found[#found + 1] = name .. ' is converted to ' .. table.concat(one.field.types, ' or ')
        elseif one.from.name ~= name then
            found[#found + 1] = name .. ' is copied from ' .. one.from.name
        end
    end
    for _, name in ipairs(source.removed) do
        if not computed[name] then found[#found + 1] = name .. (keeps and ' is kept aside' or ' is dropped') end
    end
    return found
end

return data_conversion
