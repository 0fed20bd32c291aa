-- needs: arguments, replies, sessions
-- sb_session_rotate: gives a session another secret; state, revision and handle stay.
-- KEYS:    1 root of the session's part
-- ARGV:    1 handle · 2 SHA-256 of the secret, or '' · 3 subject, for a call without a secret, or '' · 4 SHA-256 of the new
--          secret · 5 ms in which the former one stays valid (an hour at most) · 6 now (ms, or '')
-- Returns: {OK, handle, subject, state, revision, created, expires} · {GONE} no valid session, or another call rotated it
--          first · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log N) for N sessions of the subject
local MAX_OVERLAP = 3600000

return function(KEYS, ARGV)
    local by_secret = ARGV[2] ~= '' and sessions.is_digest(ARGV[2])
    local by_subject = ARGV[2] == '' and sessions.is_subject(ARGV[3])
    local is_named = sessions.is_handle(ARGV[1]) and (by_secret or by_subject)
    arguments.need(is_named, 'a session is named by handle and digest, or handle and subject')
    arguments.need(sessions.is_digest(ARGV[4]), 'a digest has 64 hexadecimal digits')
    local overlap = arguments.need(arguments.parse_count(ARGV[5], 0, MAX_OVERLAP), 'grace is in ms, an hour at most')
    local now, grace = sessions.read_clock(ARGV[6])
    local session, is_former
    if by_secret then
        session, is_former = sessions.find_by_secret(KEYS[1], ARGV[1], ARGV[2], now)
    else
        session = sessions.find_by_handle(KEYS[1], ARGV[1], ARGV[3], now)
    end
    if not session or is_former then return { replies.GONE } end
    session.former = overlap > 0 and session.digest or sessions.NONE
    session.former_until = now + overlap
    session.digest = ARGV[4]
    sessions.touch(KEYS[1], session, now, grace, true)
    return sessions.build_reply(replies.OK, session)
end
