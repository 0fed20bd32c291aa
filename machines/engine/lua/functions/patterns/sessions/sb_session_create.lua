-- needs: arguments, pattern_keys, replies, sessions
-- sb_session_create: creates a session of a subject, with its state, an expiry, and optionally a fixed end.
-- KEYS:    1 root of the part that holds the subject
-- ARGV:    1 handle (16 hex) · 2 SHA-256 of the secret (64 hex) · 3 subject · 4 state (a JSON object) · 5 time to live (ms)
--          · 6 does use prolong it? 1|0 · 7 longest life (ms, 0: no end) · 8 most sessions of the subject · 9 beyond these,
--          is the one that ends first deleted? 1|0 · 10 now (ms, or '')
-- Returns: {OK, handle, subject, state, revision, created, expires} · {EXISTS} the handle is taken · {FULL, how many} ·
--          {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log N) for N sessions of the subject; O(expired ones) at the limit
local MAX_EACH = 1000

local function parse(ARGV)
    arguments.need(sessions.is_handle(ARGV[1]), 'a handle has 16 hexadecimal digits')
    arguments.need(sessions.is_digest(ARGV[2]), 'a digest has 64 hexadecimal digits')
    arguments.need(sessions.is_subject(ARGV[3]), 'a subject has 1 to ' .. sessions.MAX_SUBJECT .. ' bytes')
    sessions.check_state(ARGV[4])
    local ttl, life = arguments.parse_count(ARGV[5], 1, sessions.MAX_TTL), arguments.parse_count(ARGV[7], 0, sessions.MAX_TTL)
    arguments.need(ttl and life, 'times are in ms, 366 days at most')
    local limit = arguments.need_count('most sessions of a subject', ARGV[8], 1, MAX_EACH)
    local now, grace = sessions.read_clock(ARGV[10])
    return { ttl = ttl, life = life, most = limit, now = now, grace = grace, evicts = ARGV[9] == '1' }
end

-- Makes room for one more session. Tells whether there is room, and how many sessions there are.
local function make_room(root, list, call)
    local count = redis.call('ZCARD', list)
    if count < call.most then return true, count end
    redis.call('ZREMRANGEBYSCORE', list, '-inf', call.now)
    count = redis.call('ZCARD', list)
    if count < call.most then return true, count end
    if not call.evicts then return false, count end
    for _, handle in ipairs(redis.call('ZRANGE', list, 0, math.min(count - call.most, MAX_EACH))) do
        redis.call('ZREM', list, handle)
        redis.call('UNLINK', pattern_keys.session_one(root, handle))
    end
    return true, call.most - 1
end

return function(KEYS, ARGV)
    local call = parse(ARGV)
    local root, now, ends = KEYS[1], call.now, call.life > 0 and call.now + call.life or 0
    local session = {
        handle = ARGV[1], digest = ARGV[2], subject = ARGV[3], state = ARGV[4], revision = 1, created = now, former_until = 0,
        slide = ARGV[6] == '1' and call.ttl or 0, ends = ends, former = sessions.NONE,
        expires = ends > 0 and math.min(now + call.ttl, ends) or now + call.ttl,
    }
    local free, count = make_room(root, pattern_keys.session_of(root, session.subject), call)
    if not free then return { replies.FULL, count } end
    if not sessions.write(root, session, now, call.grace, 'NX') then return { replies.EXISTS } end
    sessions.update_list(root, session, now, call.grace, count == 0)
    return sessions.build_reply(replies.OK, session)
end
