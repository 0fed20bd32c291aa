-- Lists of a step that most steps leave empty: they share one that is never written.
local lists = {}

local NONE = {}
lists.NONE = NONE

-- Adds to the list `name` of a step's context.
function lists.add(ctx, name, item)
    local list = ctx[name]
    if list == NONE then ctx[name] = { item } else list[#list + 1] = item end
end

return lists
