-- needs: replies, sessions
-- sb_session_get: the session that a token opens; using it prolongs it where it was made so.
-- KEYS:    1 root of the token's part
-- ARGV:    1 handle · 2 SHA-256 of the secret · 3 now (ms, or '')
-- Returns: {OK, handle, subject, state, version, created, expires} · {GONE} there is none, whyever · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log N) for N sessions of the subject; writes once in a hundredth of its time to live
return function(KEYS, ARGV)
    if not sessions.is_well_formed(ARGV[1], ARGV[2]) then
        return { replies.BAD_ARGUMENT, 'a session is asked for by handle and digest' }
    end
    local now, longer = sessions.read_clock(ARGV[3])
    if not now then return { replies.BAD_ARGUMENT, longer } end
    local one = sessions.find_by_secret(KEYS[1], ARGV[1], ARGV[2], now)
    if not one then return { replies.GONE } end
    sessions.touch(KEYS[1], one, now, longer)
    return sessions.build_reply(replies.OK, one)
end
