-- Lists that most steps leave empty. All of them share one empty list, which is never written.
local shared_lists = {}

local NONE = {}
shared_lists.NONE = NONE

-- Appends to the list `name` of a step's context.
function shared_lists.append(ctx, name, item)
    local list = ctx[name]
    if list == NONE then ctx[name] = { item } else list[#list + 1] = item end
end

return shared_lists
