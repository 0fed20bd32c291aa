-- Reading ARGV once, with clear words for what does not fit.
local arguments = {}

local MAX_ACTOR, MAX_REASON, MAX_KEY = 150, 1000, 200
local MAX_EVENT = 400 -- bytes: a hundred characters of any alphabet
local MAX_TAG = 73 -- bytes of {<machine>:<number>}
local MAX_EXACT = 2 ^ 53
local MAX_NOW = 1e14 -- ms: the year 5138; below it every number prints digit for digit
arguments.MAX_MS = 86400000 -- of a lease or a delay: a day

local function whole_ms(number)
    return number >= 0 and number < MAX_NOW and number % 1 == 0
end

-- ms since the epoch: the caller's own clock where given (tests, simulation), else the server's (then twice); nil where
-- what was given is no time.
function arguments.now(text)
    if text and text ~= '' then
        local given = tonumber(text)
        return given and whole_ms(given) and given or nil
    end
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    return now, now
end

-- A whole number from 0 to 2^53, or nil for ''.
function arguments.whole(text)
    if not string.match(text, '^%d+$') then return nil end
    local number = tonumber(text)
    return number <= MAX_EXACT and number or nil
end

-- A whole number from `least` to `most`, or nil: a fraction, infinity or NaN is none.
function arguments.count(text, least, most)
    local number = tonumber(text or '')
    return number and number % 1 == 0 and number >= least and number <= most and number or nil
end

-- A sentence when the first thing a function needs was left out.
function arguments.missing(value, what)
    return not value and what .. ' is missing' or nil
end

-- A sentence about the first argument that does not fit, or nil.
function arguments.misfit(expect, key, actor, reason, now)
    if now ~= '' and not arguments.now(now) then
        return 'now is in ms since the epoch, not ' .. string.sub(now, 1, 40)
    end
    if expect == '' and key == '' and actor == '' and reason == '' then return nil end
    if expect ~= '' and not arguments.whole(expect) then
        return 'expect is a revision, a whole number, not ' .. string.sub(expect, 1, 40)
    end
    if #key > MAX_KEY * 4 then return 'an idempotency key has at most ' .. MAX_KEY .. ' characters' end
    if #actor > MAX_ACTOR * 4 then return 'an actor has at most ' .. MAX_ACTOR .. ' characters' end
    if #reason > MAX_REASON * 4 then return 'a reason has at most ' .. MAX_REASON .. ' characters' end
    return nil
end

-- A sentence where the key is no root of a partition. Who makes a machine or a job asks: all else finds nothing below it.
function arguments.bad_root(root)
    if string.find(string.sub(root, -MAX_TAG), '{[%a_][%w_.-]*:%d%d?%d?%d?%d?}$') then return nil end
    return 'the root of a partition ends in {<machine>:<number>}'
end

-- Whether a text is a score as the server reads them, or nothing at all.
function arguments.is_score(text)
    if text == '' or string.find(text, '^-?inf$') then return true end
    return tonumber(text) and string.find(text, '^-?%d+%.?%d*e?%+?%d*$') and true or false
end

function arguments.bad_event(event)
    if event and event ~= '' and #event <= MAX_EVENT then return nil end
    return 'an event has a name of 1 to ' .. MAX_EVENT .. ' bytes'
end

return arguments
