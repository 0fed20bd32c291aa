-- needs: arguments, replies, sessions
-- sb_session_rotate: gives a session another secret; state, version and handle stay.
-- KEYS:    1 root of the session's part
-- ARGV:    1 handle · 2 SHA-256 of the secret, or '' · 3 subject, for a call without a secret, or '' · 4 SHA-256 of the new
--          secret · 5 ms in which the former one stays valid (an hour at most) · 6 now (ms, or '')
-- Returns: {OK, handle, subject, state, version, created, expires} · {GONE} no valid session, or another call rotated it
--          first · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log N) for N sessions of the subject
local MAX_OVERLAP = 3600000

local function parse(ARGV)
    local by_secret = ARGV[2] ~= '' and sessions.is_digest(ARGV[2])
    local by_subject = ARGV[2] == '' and sessions.is_subject(ARGV[3])
    if not sessions.is_handle(ARGV[1]) or not (by_secret or by_subject) then
        return nil, 'a session is named by handle and digest, or handle and subject'
    end
    if not sessions.is_digest(ARGV[4]) then return nil, 'a digest has 64 hexadecimal digits' end
    local overlap = arguments.parse_count(ARGV[5], 0, MAX_OVERLAP)
    if not overlap then return nil, 'grace is in ms, an hour at most' end
    local now, grace = sessions.read_clock(ARGV[6])
    if not now then return nil, grace end
    return { overlap = overlap, now = now, grace = grace, by_secret = by_secret }
end

return function(KEYS, ARGV)
    local call, bad = parse(ARGV)
    if not call then return { replies.BAD_ARGUMENT, bad } end
    local session, is_former
    if call.by_secret then
        session, is_former = sessions.find_by_secret(KEYS[1], ARGV[1], ARGV[2], call.now)
    else
        session = sessions.find_by_handle(KEYS[1], ARGV[1], ARGV[3], call.now)
    end
    if not session or is_former then return { replies.GONE } end
    session.former = call.overlap > 0 and session.digest or sessions.NONE
    session.former_until = call.now + call.overlap
    session.digest = ARGV[4]
    sessions.touch(KEYS[1], session, call.now, call.grace, true)
    return sessions.build_reply(replies.OK, session)
end
