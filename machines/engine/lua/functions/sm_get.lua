-- needs: statemachine
-- sm_get: what SM.GET replies: a machine as JSON, or the reason given last.
-- flags:   no-writes
-- KEYS:    1 the machine, a hash
-- ARGV:    1 REASON (any case), or left out
-- Returns: JSON · the reason · nil for a missing key or another word · an error for a key of another type, or more arguments
-- Notifies: nothing
-- Cost:    O(bytes of the map)
return function(KEYS, ARGV)
    local bad = statemachine.misuse('SM.GET key [REASON]', KEYS, ARGV)
    if bad then return bad end
    local machine, problem = statemachine.read(KEYS[1])
    if not machine then return problem end
    if not ARGV[1] then return statemachine.written(machine) end
    return statemachine.is_option(ARGV[1], 'REASON') and machine.reason
end
