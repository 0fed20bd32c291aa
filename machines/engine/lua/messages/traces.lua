-- before each call: forget
-- The trace context of what a call does (W3C Trace Context, `traceparent`). Jobs and messages that a step makes keep it, so that
-- their handlers and receivers go on with the trace. Nothing is written while there is none.
local traces = {}

local LENGTH = 55
local HEX = '[0-9a-f]'
local FORM = '^00%-' .. string.rep(HEX, 32) .. '%-' .. string.rep(HEX, 16) .. '%-' .. HEX .. HEX .. '$'

-- `traces.current`: the context of the current step, nil for none. A field, since each step asks for it.
function traces.forget() traces.current = nil end

-- Begins with the context that a caller, a job or a message brought. One that is damaged counts as none: it must not stop a step.
function traces.begin(text)
    traces.current = text and #text == LENGTH and string.find(text, FORM) and text or nil
end

return traces
