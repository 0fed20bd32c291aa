-- needs: step_source
-- Writes the source of the actions that change data, `set` and `unset`. Any other action makes the writer give up.
local action_source = {}

local LITERAL = { num = true, str = true, ['true'] = true, ['false'] = true }

local format, line = string.format, step_source.line

-- Answers the change of a field, a new one at the end of the list. A field that was changed before must have another value by
-- then: only so its place in the order of changes is known.
local function find_change(writer, changes, field)
    local change, position = changes.of[field.name], writer.positions[field.name]
    if not change then
        change = { field = field, before = position and 'f[' .. position .. ']' or 'nil', index = #changes + 1 }
        changes[#changes + 1], changes.of[field.name] = change, change
        step_source.check_size(writer, changes)
    elseif not change.certain then
        if not change.removed then
            line(writer, format('if %s == %s then return nil end', change.after, change.before))
        end
        change.certain = true
    end
    change.removed, change.literal = nil, nil
    return change
end

-- Writes a `set` or `unset`; notes it in `changes`, by field and in order.
function action_source.write(writer, action, changes)
    local form, field, after, literal = action[1], writer.program.fields[action[2]], nil, nil
    if form ~= 'set' and form ~= 'unset' or not field then return step_source.give_up(writer) end
    if form == 'unset' then
        step_source.forget(writer, field)
        if not writer.positions[field.name] and not changes.of[field.name] then return end
    elseif LITERAL[action[3][1]] then
        local value = action[3][1] == 'true' or action[3][1] ~= 'false' and action[3][2]
        local ok, raw = pcall(field.encode, value)
        if not ok or #raw > writer.program.share then return step_source.give_up(writer) end
        after, literal = step_source.write_literal(writer, field, raw), raw
    else
        after = step_source.write_field(writer, field, action[3])
    end
    local change = find_change(writer, changes, field)
    change.after, change.literal, change.removed = after or change.after, literal, form == 'unset'
end

return action_source
