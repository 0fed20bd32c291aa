-- Parses the arguments of a call. A `check` function answers the sentence about what does not fit, or nil.
local arguments = {}

local MAX_ACTOR, MAX_REASON, MAX_KEY = 150, 1000, 200
local MAX_EVENT = 400 -- bytes: 100 characters of any alphabet
local MAX_TAG = 73 -- bytes of {<machine>:<number>}
local MAX_EXACT = 2 ^ 53
local MAX_NOW = 1e14 -- ms: the year 5138; Lua prints every whole number below it digit for digit
arguments.MAX_MS = 86400000 -- the longest lease or delay: a day

-- Reads the time of a call in ms: the caller's where it is given (tests, simulation), else the server's, which the second
-- result holds too. nil where the text is no time.
function arguments.read_now(text)
    if text and text ~= '' then
        local given = tonumber(text)
        return given and given >= 0 and given < MAX_NOW and given % 1 == 0 and given or nil
    end
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    return now, now
end

-- Parses a whole number from 0 to 2^53; nil for '' and for anything else.
function arguments.parse_whole(text)
    if not string.match(text, '^%d+$') then return nil end
    local number = tonumber(text)
    return number <= MAX_EXACT and number or nil
end

-- Parses a whole number from `least` to `most`; nil for anything else: a fraction, infinity, NaN.
function arguments.parse_count(text, least, most)
    local number = tonumber(text or '')
    return number and number % 1 == 0 and number >= least and number <= most and number or nil
end

-- For the first argument that a function requires.
function arguments.check_present(value, what)
    return not value and what .. ' is missing' or nil
end

function arguments.check_queue(name)
    local fits = name and #name <= 64 and string.find(name, '^[%a_][%w_.-]*$')
    return not fits and 'a queue has a name of letters, digits, _ . and -' or nil
end

-- Ends the call with the reply BADARG where `why` says what does not fit. Only before the first write: nothing is undone.
function arguments.refuse(why)
    if why then error({ reply = { 'BADARG', why } }, 0) end
end

-- Answers `value`; ends the call with BADARG where there is none.
function arguments.need(value, why)
    if not value then arguments.refuse(why) end
    return value
end

-- Parses a number like `parse_count`; ends the call with BADARG for anything else.
function arguments.need_count(what, text, least, most)
    local number = arguments.parse_count(text, least, most)
    if not number then arguments.refuse(string.format('%s is a whole number from %d to %d', what, least, most)) end
    return number
end

-- Reads the time of a call like `read_now`; ends the call with BADARG where the text is no time.
function arguments.need_now(text)
    local now, clock = arguments.read_now(text)
    if not now then arguments.refuse('now is in ms since the epoch, not ' .. string.sub(text, 1, 40)) end
    return now, clock
end

-- For the arguments that many functions have in common: the first one that does not fit.
function arguments.check(expect, key, actor, reason, now)
    if now ~= '' and not arguments.read_now(now) then
        return 'now is in ms since the epoch, not ' .. string.sub(now, 1, 40)
    end
    if expect == '' and key == '' and actor == '' and reason == '' then return nil end
    if expect ~= '' and not arguments.parse_whole(expect) then
        return 'expect is a revision, a whole number, not ' .. string.sub(expect, 1, 40)
    end
    if #key > MAX_KEY * 4 then return 'an idempotency key has at most ' .. MAX_KEY .. ' characters' end
    if #actor > MAX_ACTOR * 4 then return 'an actor has at most ' .. MAX_ACTOR .. ' characters' end
    if #reason > MAX_REASON * 4 then return 'a reason has at most ' .. MAX_REASON .. ' characters' end
    return nil
end

-- For a key that is no root of a partition. Only functions that create a machine or a job check this: the others find no
-- keys below such a root.
function arguments.check_root(root)
    if string.find(string.sub(root, -MAX_TAG), '{[%a_][%w_.-]*:%d%d?%d?%d?%d?}$') then return nil end
    return 'the root of a partition ends in {<machine>:<number>}'
end

-- Tells whether a text is a score as Redis reads scores, or ''.
function arguments.is_score(text)
    if text == '' or string.find(text, '^-?inf$') then return true end
    return tonumber(text) and string.find(text, '^-?%d+%.?%d*e?%+?%d*$') and true or false
end

function arguments.check_event(event)
    if event and event ~= '' and #event <= MAX_EVENT then return nil end
    return 'an event has a name of 1 to ' .. MAX_EVENT .. ' bytes'
end

return arguments
