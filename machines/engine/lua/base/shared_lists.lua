-- Lists of a step that most steps leave empty: they share one that is never written.
local shared_lists = {}

local NONE = {}
shared_lists.NONE = NONE

-- Adds to the list `name` of a step's context.
function shared_lists.add(ctx, name, item)
    local list = ctx[name]
    if list == NONE then ctx[name] = { item } else list[#list + 1] = item end
end

return shared_lists
