-- needs: state_machine
-- sm_template: SM.TEMPLATE: replies the JSON of a machine without states.
-- flags:   no-writes
-- KEYS:    none
-- ARGV:    none
-- Returns: JSON with empty current, map, initial and reason · an error for any argument
-- Notifies: nothing
-- Cost:    O(1)
return function(KEYS, ARGV)
    state_machine.check_usage('SM.TEMPLATE', KEYS, ARGV)
    return state_machine.encode(state_machine.make_blank())
end
