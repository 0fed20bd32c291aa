-- needs: state_machine
-- sm_create: what SM.CREATE does: keeps a machine without states under a key, in place of one that is there.
-- KEYS:    1 the machine, a hash
-- ARGV:    none
-- Returns: OK · an error for a key of another type, or any argument
-- Notifies: what the server itself tells of HSET and PERSIST, if it does
-- Cost:    O(1)
return function(KEYS, ARGV)
    return state_machine.check_usage('SM.CREATE key', KEYS, ARGV)
        or state_machine.store(KEYS[1], state_machine.make_blank())
end
