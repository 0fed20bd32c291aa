-- needs: state_machine
-- sm_set: SM.SET: stores a machine under a key, in place of an earlier one.
-- KEYS:    1 the machine, a hash
-- ARGV:    1 JSON object with the strings current, initial and reason, and map (state -> list of states) · 2 current state,
--          used instead of the JSON's unless it is empty or left out; where both are empty, initial is
-- Returns: OK · an error for a key of another type, JSON that is no machine, or other arguments
-- Notifies:the server's own notifications of HSET and PERSIST, where enabled
-- Cost:    O(bytes of JSON)
return function(KEYS, ARGV)
    state_machine.check_usage('SM.SET key json [current]', KEYS, ARGV)
    return state_machine.store(KEYS[1], state_machine.parse(ARGV[1], ARGV[2] or ''))
end
