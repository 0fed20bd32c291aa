-- needs: arguments, pattern_keys
-- A session is one text under its handle: a line of figures and digests, then subject and state. Until when it holds is its
-- score in the list of its subject, and nowhere else: what that list does not show opens nothing. The secret is kept as its
-- digest alone.
local sessions = {}

local GRACE = 60000 -- ms that keys stay longer where the caller's clock stands in for the server's
local STEP = 100 -- an expiry slides in hundredths of its time, so that a busy session is not written at each use
local FIGURES = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%x+) ([%x-]+) (%d+)\n()'
local MAX_NOW, MAX_EXACT = 1e14, 2 ^ 53
sessions.MAX_TTL = 366 * 86400000 -- ms
sessions.MAX_STATE = 1048576 -- bytes
sessions.MAX_SUBJECT = 2048 -- bytes: 512 characters of any alphabet
sessions.NONE = '-' -- in place of a former secret

-- now (ms), how much longer keys stay; or nil and a sentence.
function sessions.clock(text)
    local now, clock = arguments.now(text)
    if not now then return nil, 'now is in ms since the epoch' end
    return now, clock and 0 or GRACE
end

local function is_hex(text, length) return text and #text == length and not string.find(text, '[^0-9a-f]') end

function sessions.is_handle(text) return is_hex(text, 16) end
function sessions.is_digest(text) return is_hex(text, 64) end
-- Of one that is only compared: what is none equals none.
function sessions.may_open(handle, digest) return handle and #handle == 16 and digest and #digest == 64 end
function sessions.is_subject(text) return text and text ~= '' and #text <= sessions.MAX_SUBJECT end
function sessions.is_state(text) return text and string.sub(text, 1, 1) == '{' and #text <= sessions.MAX_STATE end

local function damaged(handle)
    error('the session ' .. handle .. ' is damaged: another program wrote its key', 0)
end

local function figure(text, handle)
    local number = tonumber(text)
    return number < MAX_EXACT and number or damaged(handle)
end

-- The session as it is kept, with the ms it holds until (`expires`, nil where its subject's list lacks it); nil: none.
local function read(root, handle)
    local text = redis.call('GET', pattern_keys.session_one(root, handle))
    if not text then return nil end
    local version, created, slide, ends, parting, digest, former, length, from = string.match(text, FIGURES)
    if not version then damaged(handle) end
    local last = from + figure(length, handle)
    local one = {
        handle = handle, version = figure(version, handle), created = figure(created, handle), slide = figure(slide, handle),
        ends = figure(ends, handle), parting = figure(parting, handle), digest = digest, former = former,
        subject = string.sub(text, from, last - 1), state = string.sub(text, last),
    }
    local score = tonumber(redis.call('ZSCORE', pattern_keys.session_of(root, one.subject), handle) or nil)
    if score and not (score >= 0 and score < MAX_NOW) then damaged(handle) end
    one.expires = score
    return one
end

-- The session that holds at `now` by its handle alone, of that subject; nil otherwise.
function sessions.held(root, handle, subject, now)
    local one = read(root, handle)
    return one and one.subject == subject and one.expires and one.expires > now and one or nil
end

-- The session that handle and secret open at `now`, and whether by the secret before; nil otherwise, whyever.
function sessions.opened(root, handle, digest, now)
    local one = read(root, handle)
    if not one or not one.expires or one.expires <= now then return nil end
    if one.digest == digest then return one, false end
    if one.former == digest and now < one.parting then return one, true end
    return nil
end

-- Writes it; `...`: NX, perhaps. Whether that was done.
function sessions.write(root, one, now, longer, ...)
    local line = string.format('%d %d %d %d %d %s %s %d\n', one.version, one.created, one.slide, one.ends, one.parting,
        one.digest, one.former, #one.subject)
    return redis.call('SET', pattern_keys.session_one(root, one.handle), line .. one.subject .. one.state,
        'PX', one.expires - now + longer, ...)
end

-- The list of its subject shows it, and lives as long as the last of what it shows.
function sessions.list(root, one, now, longer, is_first)
    local list = pattern_keys.session_of(root, one.subject)
    redis.call('ZADD', list, one.expires, one.handle)
    if is_first then
        redis.call('PEXPIRE', list, one.expires - now + longer)
    else
        redis.call('PEXPIRE', list, one.expires - now + longer, 'GT')
    end
end

-- Whether its expiry moved on, because it was used; never past its end.
local function slides(one, now)
    if one.slide == 0 then return false end
    local expires = now + one.slide
    if one.ends > 0 and expires > one.ends then expires = one.ends end
    if expires - one.expires < math.max(1, one.slide / STEP) then return false end
    one.expires = expires
    return true
end

-- It was used, and perhaps changed.
function sessions.used(root, one, now, longer, is_changed)
    local moved = slides(one, now)
    if is_changed then
        sessions.write(root, one, now, longer)
    elseif moved then
        redis.call('PEXPIRE', pattern_keys.session_one(root, one.handle), one.expires - now + longer)
    end
    if moved then sessions.list(root, one, now, longer) end
end

-- How replies tell of one.
function sessions.told(word, one)
    return { word, one.handle, one.subject, one.state, one.version, one.created, one.expires }
end

function sessions.remove(root, one)
    redis.call('ZREM', pattern_keys.session_of(root, one.subject), one.handle)
    redis.call('UNLINK', pattern_keys.session_one(root, one.handle))
end

return sessions
