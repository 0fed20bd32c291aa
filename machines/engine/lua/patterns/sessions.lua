-- needs: arguments, pattern_keys
-- A session is one text under its handle: a line of figures and digests, then subject and state. Its expiry is only its
-- score in the list of its subject: a session that the list lacks is not valid. Only the digest of the secret is stored.
local sessions = {}

local GRACE = 60000 -- ms that keys live longer when the caller's clock replaces the server's
local SLIDE_STEPS = 100 -- an expiry slides in hundredths of its time, so that a busy session is not written at each use
local FIRST_LINE = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%x+) ([%x-]+) (%d+)\n()'
local MAX_NOW, MAX_EXACT = 1e14, 2 ^ 53
sessions.MAX_TTL = 366 * 86400000 -- ms
sessions.MAX_STATE = 1048576 -- bytes
sessions.MAX_SUBJECT = 2048 -- bytes: 512 characters of any alphabet
sessions.NONE = '-' -- in place of a former secret

-- Reads the clock of a call: now (ms), and how much longer keys live.
function sessions.read_clock(text)
    local now, clock = arguments.need_now(text)
    return now, clock and 0 or GRACE
end

local function is_hex(text, length) return text and #text == length and not string.find(text, '[^0-9a-f]') end

function sessions.is_handle(text) return is_hex(text, 16) end
function sessions.is_digest(text) return is_hex(text, 64) end
-- Tells whether handle and digest have the right length. They are only compared: a wrong one matches no session.
function sessions.check_name(handle, digest)
    local fits = handle and #handle == 16 and digest and #digest == 64
    arguments.need(fits, 'a session is named by handle and digest')
end
function sessions.is_subject(text) return text and text ~= '' and #text <= sessions.MAX_SUBJECT end
function sessions.check_state(text)
    local fits = text and string.sub(text, 1, 1) == '{' and #text <= sessions.MAX_STATE
    arguments.need(fits, 'state is a JSON object of at most ' .. sessions.MAX_STATE .. ' bytes')
end

local function throw_damaged(handle)
    error('the session ' .. handle .. ' is damaged: another program wrote its key', 0)
end

local function parse_figure(text, handle)
    local number = tonumber(text)
    return number < MAX_EXACT and number or throw_damaged(handle)
end

-- Reads the stored session with its expiry in ms (`expires`, nil when its subject's list lacks it); nil when there is none.
local function read(root, handle)
    local text = redis.call('GET', pattern_keys.session_one(root, handle))
    if not text then return nil end
    local revision, created, slide, ends, parting, digest, former, length, from = string.match(text, FIRST_LINE)
    if not revision then throw_damaged(handle) end
    local last = from + parse_figure(length, handle)
    local session = {
        handle = handle, revision = parse_figure(revision, handle), created = parse_figure(created, handle),
        slide = parse_figure(slide, handle), ends = parse_figure(ends, handle), former_until = parse_figure(parting, handle),
        digest = digest, former = former,
        subject = string.sub(text, from, last - 1), state = string.sub(text, last),
    }
    local score = tonumber(redis.call('ZSCORE', pattern_keys.session_of(root, session.subject), handle) or nil)
    if score and not (score >= 0 and score < MAX_NOW) then throw_damaged(handle) end
    session.expires = score
    return session
end

-- Finds a valid session of the subject by its handle alone; nil otherwise.
function sessions.find_by_handle(root, handle, subject, now)
    local session = read(root, handle)
    return session and session.subject == subject and session.expires and session.expires > now and session or nil
end

-- Finds the valid session that handle and secret open, and whether by the former secret; nil for any reason otherwise.
function sessions.find_by_secret(root, handle, digest, now)
    local session = read(root, handle)
    if not session or not session.expires or session.expires <= now then return nil end
    if session.digest == digest then return session, false end
    if session.former == digest and now < session.former_until then return session, true end
    return nil
end

-- Writes the session; `...`: NX or nothing. Tells whether it was written.
function sessions.write(root, session, now, grace, ...)
    local line = string.format('%d %d %d %d %d %s %s %d\n', session.revision, session.created, session.slide,
        session.ends, session.former_until, session.digest, session.former, #session.subject)
    return redis.call('SET', pattern_keys.session_one(root, session.handle), line .. session.subject .. session.state,
        'PX', session.expires - now + grace, ...)
end

-- Adds the session to the list of its subject; the list lives as long as its last session.
function sessions.update_list(root, session, now, grace, is_first)
    local list = pattern_keys.session_of(root, session.subject)
    redis.call('ZADD', list, session.expires, session.handle)
    if is_first then
        redis.call('PEXPIRE', list, session.expires - now + grace)
    else
        redis.call('PEXPIRE', list, session.expires - now + grace, 'GT')
    end
end

-- Slides the expiry of a session that is used, never past its end. Tells whether it moved.
local function slide_expiry(session, now)
    if session.slide == 0 then return false end
    local expires = now + session.slide
    if session.ends > 0 and expires > session.ends then expires = session.ends end
    if expires - session.expires < math.max(1, session.slide / SLIDE_STEPS) then return false end
    session.expires = expires
    return true
end

-- Notes a use of the session, and a change where it has one.
function sessions.touch(root, session, now, grace, is_changed)
    local moved = slide_expiry(session, now)
    if is_changed then
        sessions.write(root, session, now, grace)
    elseif moved then
        redis.call('PEXPIRE', pattern_keys.session_one(root, session.handle), session.expires - now + grace)
    end
    if moved then sessions.update_list(root, session, now, grace) end
end

-- Builds the reply that describes a session.
function sessions.build_reply(word, session)
    return { word, session.handle, session.subject, session.state, session.revision, session.created, session.expires }
end

function sessions.remove(root, session)
    redis.call('ZREM', pattern_keys.session_of(root, session.subject), session.handle)
    redis.call('UNLINK', pattern_keys.session_one(root, session.handle))
end

return sessions
