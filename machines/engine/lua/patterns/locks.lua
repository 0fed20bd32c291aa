-- needs: arguments, monotonic, pattern_keys
-- A lock is held while its holder's key is there. Who that is stands beside it; of a holder that redis-py's own Lock has
-- put there nothing but the token is known.
local locks = {}
local call = redis.call

local GRACE = 60000 -- ms that keys stay longer where the caller's clock stands in for the server's
local KEEP = 30 * 86400000 -- ms: the last fence stays, for a clock that is set back meanwhile
local FIELDS = { 'token', 'fence', 'owner', 'since', 'until' }
locks.MAX_OWNER = 600 -- bytes: 150 characters of any alphabet

-- {now, grace, clock}; or nil and a sentence.
function locks.at(text)
    local now, clock = arguments.now(text)
    if not now then return nil, 'now is in ms since the epoch' end
    return { now = now, grace = clock and 0 or GRACE, clock = clock ~= nil }
end

function locks.bad_token(token)
    local fits = token and #token == 32 and string.match(token, '^[0-9a-f]+$')
    return not fits and 'a token is 32 hex digits' or nil
end

function locks.bad_time(ms)
    return not arguments.count(ms, 1, arguments.MAX_MS) and 'a lock is held for 1 to 86400000 ms' or nil
end

local function number(text, root)
    return arguments.count(text or '', 0, monotonic.MOST)
        or error('a lock is damaged, another program wrote its key: ' .. root, 0)
end

-- Who holds it, or nil; and the last fence as it is kept, or false. `ends`: ms, where that is known without asking.
function locks.held(root, at)
    local token = call('GET', pattern_keys.lock_holder(root))
    if not token then return nil, call('HGET', pattern_keys.lock_last(root), 'fence') end
    local row = call('HMGET', pattern_keys.lock_last(root), unpack(FIELDS))
    local one = { token = token, owner = '', fence = 0, since = 0, ends = nil }
    if row[1] == token then
        one.fence, one.owner, one.since = number(row[2], root), row[3] or '', number(row[4], root)
        if not at.clock then
            one.ends = number(row[5], root)
            if one.ends <= at.now then return nil, row[2] end
        end
    end
    return one, row[2]
end

function locks.keep(root, at, one, ms)
    one.ends = at.now + ms
    call('SET', pattern_keys.lock_holder(root), one.token, 'PX', ms + at.grace)
    local last = pattern_keys.lock_last(root)
    call('HSET', last, 'token', one.token, 'fence', monotonic.text(one.fence), 'owner', one.owner,
        'since', monotonic.text(one.since), 'until', monotonic.text(one.ends))
    call('PEXPIRE', last, KEEP + ms)
end

-- ms until it ends by itself; -1 where it does not.
function locks.left(root, one, at)
    if one.ends then return math.max(0, one.ends - at.now) end
    return math.max(-1, call('PTTL', pattern_keys.lock_holder(root)))
end

return locks
