-- The marks of moves in an instance: `_plans` of its hash names the plans that brought it to its version, each as
-- `<plan>:<version before>`, the newest last. A way back takes the last one off again.
local migration_marks = {}

local MAX = 64 -- bytes: a longer value would make Redis store the whole hash in a larger form
local UNNAMED = '-'
local match = string.match

-- Answers the marks after a move of an instance that had version `from`; nil where none is left.
function migration_marks.add(plan, raw, from)
    local held = raw._plans
    if plan.spec.inverse_of then return held and match(held, '^(.*) %S+$') or nil end
    local text = (plan.name or UNNAMED) .. ':' .. from
    if held then text = held .. ' ' .. text end
    while #text > MAX do text = match(text, '^%S+ (.*)$') end
    return text
end

-- Answers the version (text) that an instance had before this plan brought it to the one that it has; nil where another plan
-- or none did.
function migration_marks.find_source(raw, plan)
    local id, version = match(raw._plans or '', '(%x+):(%d+)$')
    return id == plan and version or nil
end

return migration_marks
