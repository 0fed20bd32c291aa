-- needs: replies, sessions
-- sb_session_get: reads the session that a token opens; use prolongs it where it was created so.
-- KEYS:    1 root of the token's part
-- ARGV:    1 handle · 2 SHA-256 of the secret · 3 now (ms, or '')
-- Returns: {OK, handle, subject, state, revision, created, expires} · {GONE} no valid session, for any reason · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log N) for N sessions of the subject; writes once in a hundredth of its time to live
return function(KEYS, ARGV)
    sessions.check_name(ARGV[1], ARGV[2])
    local now, grace = sessions.read_clock(ARGV[3])
    local session = sessions.find_by_secret(KEYS[1], ARGV[1], ARGV[2], now)
    if not session then return { replies.GONE } end
    sessions.touch(KEYS[1], session, now, grace)
    return sessions.build_reply(replies.OK, session)
end
