-- needs: arguments, replies, sessions
-- sb_session_put: writes the state of a session, optionally only at an expected version.
-- KEYS:    1 root of the token's part
-- ARGV:    1 handle · 2 SHA-256 of the secret · 3 state (a JSON object) · 4 expected version, or '' · 5 now (ms, or '')
-- Returns: {OK, handle, subject, state, version, created, expires} · {CONFLICT, actual version} · {GONE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log N) for N sessions of the subject
local function parse(ARGV)
    if not sessions.is_well_formed(ARGV[1], ARGV[2]) then
        return nil, 'a session is named by handle and digest'
    end
    if not sessions.is_state(ARGV[3]) then return nil, 'state is a JSON object of at most ' .. sessions.MAX_STATE .. ' bytes' end
    local expect = ARGV[4] ~= '' and arguments.parse_count(ARGV[4], 0, 2 ^ 53 - 1)
    if expect == nil then return nil, 'expect is a version, a whole number' end
    local now, grace = sessions.read_clock(ARGV[5])
    if not now then return nil, grace end
    return { expect = expect, now = now, grace = grace }
end

return function(KEYS, ARGV)
    local call, bad = parse(ARGV)
    if not call then return { replies.BAD_ARGUMENT, bad } end
    local session = sessions.find_by_secret(KEYS[1], ARGV[1], ARGV[2], call.now)
    if not session then return { replies.GONE } end
    if call.expect and call.expect ~= session.version then return { replies.CONFLICT, session.version } end
    session.state, session.version = ARGV[3], session.version + 1
    sessions.touch(KEYS[1], session, call.now, call.grace, true)
    return sessions.build_reply(replies.OK, session)
end
