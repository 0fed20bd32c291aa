-- needs: arguments, monotonic, pattern_keys
-- A lock is held while its holder's key exists. A second key has the holder's facts; of a holder that redis-py's own Lock
-- wrote only the token is known.
local locks = {}
local call = redis.call

local GRACE = 60000 -- ms that keys live longer when the caller's clock replaces the server's
local KEEP_FENCE = 30 * 86400000 -- ms: the last fence is kept, for a clock that is set back meanwhile
local FIELDS = { 'token', 'fence', 'owner', 'since', 'until' }
locks.MAX_OWNER = 600 -- bytes: 150 characters of any alphabet

-- Reads the clock of a call: {now, grace, clock}.
function locks.read_clock(text)
    local now, clock = arguments.need_now(text)
    return { now = now, grace = clock and 0 or GRACE, clock = clock ~= nil }
end

function locks.check_token(token)
    arguments.need(token and #token == 32 and string.match(token, '^[0-9a-f]+$'), 'a token is 32 hex digits')
end

function locks.check_time(ms)
    arguments.need_count('how long a lock is held, in ms,', ms, 1, arguments.MAX_MS)
end

local function parse_number(text, root)
    return arguments.parse_count(text or '', 0, monotonic.MOST)
        or error('a lock is damaged, another program wrote its key: ' .. root, 0)
end

-- Reads the holder, or nil; and the last fence as it is stored, or false. `ends`: ms, where it is known without a command.
function locks.read_holder(root, clock)
    local token = call('GET', pattern_keys.lock_holder(root))
    if not token then return nil, call('HGET', pattern_keys.lock_last(root), 'fence') end
    local row = call('HMGET', pattern_keys.lock_last(root), unpack(FIELDS))
    local holder = { token = token, owner = '', fence = 0, since = 0, ends = nil }
    if row[1] == token then
        holder.fence, holder.owner, holder.since = parse_number(row[2], root), row[3] or '', parse_number(row[4], root)
        if not clock.clock then
            holder.ends = parse_number(row[5], root)
            if holder.ends <= clock.now then return nil, row[2] end
        end
    end
    return holder, row[2]
end

function locks.hold(root, clock, holder, ms)
    holder.ends = clock.now + ms
    call('SET', pattern_keys.lock_holder(root), holder.token, 'PX', ms + clock.grace)
    local last = pattern_keys.lock_last(root)
    call('HSET', last, 'token', holder.token, 'fence', monotonic.format(holder.fence), 'owner', holder.owner,
        'since', monotonic.format(holder.since), 'until', monotonic.format(holder.ends))
    call('PEXPIRE', last, KEEP_FENCE + ms)
end

-- Counts the ms until the lock expires; -1 when it does not.
function locks.count_left(root, holder, clock)
    if holder.ends then return math.max(0, holder.ends - clock.now) end
    return math.max(-1, call('PTTL', pattern_keys.lock_holder(root)))
end

return locks
