-- needs: arguments, pattern_keys, replies, sessions
-- sb_session_revoke: ends one session, by its token or by handle and subject, or all of a subject except one.
-- KEYS:    1 root of the part
-- ARGV:    1 one | all · 2 handle; with all: the one that stays, or '' · 3 SHA-256 of the secret, or '' · 4 subject, for a
--          call without a secret, or '' · 5 now (ms, or '')
-- Returns: {OK, how many ended} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(N) for the N sessions of the subject that end; one: O(log N)
local function revoke_one(root, ARGV, now)
    local found
    if ARGV[3] ~= '' then
        found = sessions.find_by_secret(root, ARGV[2], ARGV[3], now)
    else
        found = sessions.find_by_handle(root, ARGV[2], ARGV[4], now)
    end
    if not found then return 0 end
    sessions.remove(root, found)
    return 1
end

local function revoke_all(root, ARGV, now)
    local list, ended = pattern_keys.session_of(root, ARGV[4]), 0
    local rows = redis.call('ZRANGE', list, 0, -1, 'WITHSCORES')
    for i = 1, #rows, 2 do
        if rows[i] ~= ARGV[2] then
            if tonumber(rows[i + 1]) > now then ended = ended + 1 end
            redis.call('ZREM', list, rows[i])
            redis.call('UNLINK', pattern_keys.session_one(root, rows[i]))
        end
    end
    return ended
end

local function check_arguments(ARGV)
    if ARGV[1] == 'all' then
        local is_valid = ARGV[2] == '' or sessions.is_handle(ARGV[2])
        return not (is_valid and sessions.is_subject(ARGV[4])) and 'all: of a subject, but perhaps of one handle'
    end
    local known = ARGV[3] ~= '' and sessions.is_digest(ARGV[3]) or ARGV[3] == '' and sessions.is_subject(ARGV[4])
    return not (ARGV[1] == 'one' and sessions.is_handle(ARGV[2]) and known) and 'one: by handle and digest, or subject'
end

return function(KEYS, ARGV)
    arguments.refuse(check_arguments(ARGV))
    local now = sessions.read_clock(ARGV[5])
    return { replies.OK, (ARGV[1] == 'all' and revoke_all or revoke_one)(KEYS[1], ARGV, now) }
end
