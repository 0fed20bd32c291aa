-- needs: state_machine
-- sm_mutate: SM.MUTATE: moves a machine to a state that its current one leads to, or by force to any of its states.
-- KEYS:    1 the machine, a hash
-- ARGV:    1 state, a key of the map · 2 reason; without one the latest stays · 3 FORCE (any case), or left out
-- Returns: OK · nil for a missing key · an error for a state that is no key of the map, for one that the current state does
--          not lead to unless forced, for another word than FORCE, for a key of another type, or other arguments
-- Notifies:the server's own notification of HSET, where enabled
-- Cost:    O(bytes of the map) to read it; the decoded map is cached between calls
return function(KEYS, ARGV)
    local target, reason, option = ARGV[1], ARGV[2], ARGV[3]
    state_machine.check_usage('SM.MUTATE key state [reason [FORCE]]', KEYS, ARGV)
    local machine = state_machine.read(KEYS[1])
    if not machine then return false end
    state_machine.check_transition(machine, target, option)
    if reason then state_machine.check_text(reason, 'a reason') end
    redis.call('HSET', KEYS[1], 'current', target, 'reason', reason or machine.reason)
    return redis.status_reply('OK')
end
