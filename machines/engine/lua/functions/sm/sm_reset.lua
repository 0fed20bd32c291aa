-- needs: state_machine
-- sm_reset: SM.RESET: moves a machine to its initial state; its reason stays.
-- KEYS:    1 the machine, a hash
-- ARGV:    none
-- Returns: OK · nil for a missing key · an error for a key of another type, or any argument
-- Notifies:the server's own notification of HSET, where enabled
-- Cost:    O(bytes of the map)
return function(KEYS, ARGV)
    state_machine.check_usage('SM.RESET key', KEYS, ARGV)
    local machine = state_machine.read(KEYS[1])
    if not machine then return false end
    redis.call('HSET', KEYS[1], 'current', machine.initial)
    return redis.status_reply('OK')
end
