-- needs: state_machine
-- sm_state: SM.STATE: replies the current state of a machine, or all its states.
-- flags:   no-writes
-- KEYS:    1 the machine, a hash
-- ARGV:    1 LIST, or left out; like the module, it lists the states for any other word, too
-- Returns: array of one, the current state · array of the keys of the map, sorted · nil for a missing key · an error for a key
--          of another type, or more arguments
-- Notifies: nothing
-- Cost:    O(bytes of the map)
return function(KEYS, ARGV)
    state_machine.check_usage('SM.STATE key [LIST]', KEYS, ARGV)
    local machine = state_machine.read(KEYS[1])
    if not machine then return false end
    return ARGV[1] and state_machine.list_states(machine) or { machine.current }
end
