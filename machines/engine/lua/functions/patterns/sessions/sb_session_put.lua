-- needs: arguments, replies, sessions
-- sb_session_put: writes the state of a session anew, perhaps only at the version the caller saw.
-- KEYS:    1 root of the token's part
-- ARGV:    1 handle · 2 SHA-256 of the secret · 3 state (a JSON object) · 4 version it has to be at, or '' · 5 now (ms, or '')
-- Returns: {OK, handle, subject, state, version, created, expires} · {CONFLICT, actual version} · {GONE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log N) for N sessions of the subject
local function read(ARGV)
    if not sessions.is_well_formed(ARGV[1], ARGV[2]) then
        return nil, 'a session is asked for by handle and digest'
    end
    if not sessions.is_state(ARGV[3]) then return nil, 'state is a JSON object of at most ' .. sessions.MAX_STATE .. ' bytes' end
    local expect = ARGV[4] ~= '' and arguments.parse_count(ARGV[4], 0, 2 ^ 53 - 1)
    if expect == nil then return nil, 'expect is a version, a whole number' end
    local now, longer = sessions.read_clock(ARGV[5])
    if not now then return nil, longer end
    return { expect = expect, now = now, longer = longer }
end

return function(KEYS, ARGV)
    local call, bad = read(ARGV)
    if not call then return { replies.BAD_ARGUMENT, bad } end
    local one = sessions.find_by_secret(KEYS[1], ARGV[1], ARGV[2], call.now)
    if not one then return { replies.GONE } end
    if call.expect and call.expect ~= one.version then return { replies.CONFLICT, one.version } end
    one.state, one.version = ARGV[3], one.version + 1
    sessions.touch(KEYS[1], one, call.now, call.longer, true)
    return sessions.build_reply(replies.OK, one)
end
