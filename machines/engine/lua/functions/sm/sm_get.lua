-- needs: state_machine
-- sm_get: SM.GET: replies a machine as JSON, or the latest reason.
-- flags:   no-writes
-- KEYS:    1 the machine, a hash
-- ARGV:    1 REASON (any case), or left out
-- Returns: JSON · the reason · nil for a missing key or another word · an error for a key of another type, or more arguments
-- Notifies: nothing
-- Cost:    O(bytes of the map)
return function(KEYS, ARGV)
    state_machine.check_usage('SM.GET key [REASON]', KEYS, ARGV)
    local machine = state_machine.read(KEYS[1])
    if not machine then return false end
    if not ARGV[1] then return state_machine.encode(machine) end
    return state_machine.is_option(ARGV[1], 'REASON') and machine.reason
end
