-- needs: statemachine
-- sm_template: what SM.TEMPLATE replies: the JSON of a machine without states, to be filled in.
-- flags:   no-writes
-- KEYS:    none
-- ARGV:    none
-- Returns: JSON with empty current, map, initial and reason · an error for any argument
-- Notifies: nothing
-- Cost:    O(1)
return function(KEYS, ARGV)
    return statemachine.misuse('SM.TEMPLATE', KEYS, ARGV)
        or statemachine.written(statemachine.blank())
end
