-- Names of events that only the engine creates: the end of jobs, child instances and states, timers and errors. A machine
-- may listen for them; no action and no caller may send, raise, emit or fire them. `limits.is_reserved_event` in Python has
-- the same rule.
local reserved_events = {}

local PREFIXES = { ['done.'] = true, ['error.'] = true, ['after.'] = true }

function reserved_events.is_reserved(event)
    return PREFIXES[string.match(event or '', '^%l+%.') or ''] == true
end

-- Answers the sentence that refuses a name.
function reserved_events.describe(event)
    return "the event '" .. event .. "' is the engine's own: names that begin with done., error. or after. are never sent"
end

return reserved_events
