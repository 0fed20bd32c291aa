-- needs: arguments, pattern_keys, replies, sessions
-- sb_session_list: lists the valid sessions of a subject, the one that ends first in front.
-- flags:   no-writes
-- KEYS:    1 root of the part that holds the subject
-- ARGV:    1 subject · 2 now (ms, or '')
-- Returns: {OK, {handle, state, revision, created, expires}...} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(N) for N sessions of the subject, a thousand at most
return function(KEYS, ARGV)
    arguments.need(sessions.is_subject(ARGV[1]), 'a subject is missing')
    local now, found = sessions.read_clock(ARGV[2]), { replies.OK }
    for _, handle in ipairs(redis.call('ZRANGE', pattern_keys.session_of(KEYS[1], ARGV[1]), 0, -1)) do
        local session = sessions.find_by_handle(KEYS[1], handle, ARGV[1], now)
        if session then
            found[#found + 1] = { handle, session.state, session.revision, session.created, session.expires }
        end
    end
    return found
end
