-- Names of events that only the engine makes: what work, children, states, timers and errors end with. A machine may
-- listen for them; nobody may send, raise, emit or fire them. `limits.is_reserved_event` in Python is the same rule.
local reserved_events = {}

local PREFIXES = { ['done.'] = true, ['error.'] = true, ['after.'] = true }

function reserved_events.is(event)
    return PREFIXES[string.match(event or '', '^%l+%.') or ''] == true
end

-- The sentence for a name that is refused.
function reserved_events.why(event)
    return "the event '" .. event .. "' is the engine's own: names that begin with done., error. or after. are never sent"
end

return reserved_events
