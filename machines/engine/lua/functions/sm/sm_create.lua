-- needs: state_machine
-- sm_create: SM.CREATE: stores a machine without states under a key, in place of an earlier one.
-- KEYS:    1 the machine, a hash
-- ARGV:    none
-- Returns: OK · an error for a key of another type, or any argument
-- Notifies:the server's own notifications of HSET and PERSIST, where enabled
-- Cost:    O(1)
return function(KEYS, ARGV)
    state_machine.check_usage('SM.CREATE key', KEYS, ARGV)
    return state_machine.store(KEYS[1], state_machine.make_blank())
end
