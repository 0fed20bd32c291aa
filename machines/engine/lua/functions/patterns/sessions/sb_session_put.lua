-- needs: arguments, replies, sessions
-- sb_session_put: writes the state of a session, optionally only at an expected revision.
-- KEYS:    1 root of the token's part
-- ARGV:    1 handle · 2 SHA-256 of the secret · 3 state (a JSON object) · 4 expected revision, or '' · 5 now (ms, or '')
-- Returns: {OK, handle, subject, state, revision, created, expires} · {CONFLICT, actual revision} · {GONE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log N) for N sessions of the subject
return function(KEYS, ARGV)
    sessions.check_name(ARGV[1], ARGV[2])
    sessions.check_state(ARGV[3])
    local expect = ARGV[4] ~= '' and arguments.parse_count(ARGV[4], 0, 2 ^ 53 - 1)
    arguments.need(expect ~= nil, 'expect is a revision, a whole number')
    local now, grace = sessions.read_clock(ARGV[5])
    local session = sessions.find_by_secret(KEYS[1], ARGV[1], ARGV[2], now)
    if not session then return { replies.GONE } end
    if expect and expect ~= session.revision then return { replies.CONFLICT, session.revision } end
    session.state, session.revision = ARGV[3], session.revision + 1
    sessions.touch(KEYS[1], session, now, grace, true)
    return sessions.build_reply(replies.OK, session)
end
