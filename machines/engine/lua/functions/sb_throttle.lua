-- needs: arguments, replies
-- sb_throttle: takes from what a limit leaves, or says when to come again; what is refused costs nothing. 'pace': the generic
-- cell rate algorithm: `limit` at once, then one each per/limit ms. 'window': `limit` in the `per` ms after the first one.
-- KEYS:    1 the throttle's key, a string of its own
-- ARGV:    1 pace | window · 2 limit (1 to 1000000) · 3 per (ms, 1 to 30 days) · 4 cost (1 to limit) · 5 now (ms, or '')
-- Returns: {OK, allowed 0|1, remaining, reset after ms, retry after ms (0 when allowed)} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1): one GET, and one SET with its expiry where it is allowed
local MAX_LIMIT, MAX_PER = 1000000, 30 * 86400000 -- their product stays below 2^53
local GRACE = 60000 -- ms that a key stays longer where the caller's clock stands in for the server's
local kinds = {}

local function numbers(text)
    local a, b, c = string.match(text or '', '^(%d+) (%d+) (%d+)$')
    return tonumber(a), tonumber(b), tonumber(c)
end

-- The backlog counts in ms / limit, so that every figure is whole: one of `limit` is worth `per`, and it shrinks by
-- `limit` a ms.
function kinds.pace(held, call)
    local now, limit, per = call.now, call.limit, call.per
    local at, backlog, was = numbers(held)
    if not at then at, backlog, was = now, 0, limit end
    if was ~= limit then backlog = math.ceil(backlog / was * limit) end
    local left = math.min(math.max(0, backlog - math.max(0, now - at) * limit), per * limit)
    local wanted = left + per * call.cost
    local allowed = wanted <= per * limit
    if allowed then left = wanted end
    local full = math.ceil(left / limit)
    local retry = allowed and 0 or math.ceil((wanted - per * limit) / limit)
    return allowed, math.floor((per * limit - left) / per), full, retry, { now, left, limit }
end

function kinds.window(held, call)
    local now, limit, per = call.now, call.limit, call.per
    local from, count = numbers(held)
    if not from or now - from >= per or now < from then from, count = now, 0 end
    local allowed = count + call.cost <= limit
    if allowed then count = count + call.cost end
    local ends = from + per - now
    return allowed, math.max(0, limit - count), ends, allowed and 0 or ends, { from, count, limit }
end

local function read(ARGV)
    local call = { kind = kinds[ARGV[1] or ''] }
    if not call.kind then return nil, 'the kinds are pace and window' end
    call.limit = arguments.count(ARGV[2], 1, MAX_LIMIT)
    if not call.limit then return nil, 'limit is a whole number from 1 to ' .. MAX_LIMIT end
    call.per = arguments.count(ARGV[3], 1, MAX_PER)
    if not call.per then return nil, 'per is in ms, a whole number from 1 to 30 days' end
    call.cost = arguments.count(ARGV[4], 1, call.limit)
    if not call.cost then return nil, 'cost is a whole number from 1 to the limit, which is ' .. call.limit end
    local bad = arguments.misfit('', '', '', '', ARGV[5] or '')
    if bad then return nil, bad end
    local now, clock = arguments.now(ARGV[5])
    call.now = now
    call.grace = clock and 0 or GRACE
    return call
end

return function(KEYS, ARGV)
    local call, bad = read(ARGV)
    if not call then return { replies.BAD_ARGUMENT, bad } end
    local allowed, remaining, reset, retry, kept = call.kind(redis.call('GET', KEYS[1]) or nil, call)
    if allowed then
        local text = string.format('%.0f %.0f %.0f', kept[1], kept[2], kept[3])
        redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', reset + call.grace))
    end
    return { replies.OK, allowed and 1 or 0, remaining, reset, retry }
end
