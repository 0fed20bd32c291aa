-- needs: arguments, replies
-- sb_throttle: takes from what a limit leaves, or says when to try again; a refused call costs nothing. 'pace': the generic
-- cell rate algorithm: `limit` at once, then one each per/limit ms. 'window': `limit` in the `per` ms after the first one.
-- KEYS:    1 the throttle's key, a string of its own
-- ARGV:    1 pace | window · 2 limit (1 to 1000000) · 3 per (ms, 1 to 30 days) · 4 cost (1 to limit; 0 reads only) · 5 now
--          (ms, or '') · 6 least (1 to cost; the whole cost by default): when the limit leaves less than the cost but at
--          least this, takes what is left
-- Returns: {OK, allowed 0|1 (for cost 0: whether one would be), remaining, reset after ms, retry after ms (0 when allowed),
--          how many were taken} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1): one GET, and one SET with its expiry when allowed
local MAX_LIMIT, MAX_PER = 1000000, 30 * 86400000 -- their product is below 2^53
local GRACE = 60000 -- ms that a key lives longer when the caller's clock replaces the server's
local ceil, floor, max, min, match = math.ceil, math.floor, math.max, math.min, string.match
local kinds = {}

local function parse_state(state)
    if not state then return nil end
    local a, b, c = match(state, '^(%d+) (%d+) (%d+)$')
    return tonumber(a), tonumber(b), tonumber(c)
end

local function compute_taken(room, cost, least)
    if room >= cost then return cost end
    return room >= least and room or 0
end

-- The backlog is counted in ms / limit, so that every number is whole: one of `limit` is worth `per`, and the backlog
-- shrinks by `limit` a ms.
function kinds.pace(state, now, limit, per, cost, least)
    local at, backlog, was = parse_state(state)
    if not at then at, backlog, was = now, 0, limit end
    if was ~= limit then backlog = ceil(backlog / was * limit) end
    local whole = per * limit
    local left = min(max(0, backlog - max(0, now - at) * limit), whole)
    local taken = compute_taken(floor((whole - left) / per), cost, least)
    local retry = taken > 0 and 0 or max(0, ceil((left + per * least - whole) / limit))
    left = left + per * taken
    return taken, floor((whole - left) / per), ceil(left / limit), retry, now, left
end

function kinds.window(state, now, limit, per, cost, least)
    local from, count = parse_state(state)
    if not from or now - from >= per or now < from then from, count = now, 0 end
    local taken = compute_taken(limit - count, cost, least)
    local ends, lacks = from + per - now, limit - count < least
    count = count + taken
    return taken, math.max(0, limit - count), count > 0 and ends or 0, taken == 0 and lacks and ends or 0, from, count
end

return function(KEYS, ARGV)
    local kind = arguments.need(kinds[ARGV[1] or ''], 'the kinds are pace and window')
    local limit = arguments.need_count('limit', ARGV[2], 1, MAX_LIMIT)
    local per = arguments.need_count('per, in ms,', ARGV[3], 1, MAX_PER)
    local cost = arguments.need_count('cost, up to the limit,', ARGV[4], 0, limit)
    local least = ARGV[6] and arguments.need_count('least, up to the cost,', ARGV[6], 1, cost) or math.max(1, cost)
    local now, clock = arguments.need_now(ARGV[5])
    local taken, remaining, reset, retry, from, run = kind(redis.call('GET', KEYS[1]), now, limit, per, cost, least)
    if taken > 0 then
        local ms = reset + (clock and 0 or GRACE)
        redis.call('SET', KEYS[1], string.format('%d %d %d', from, run, limit), 'PX', ms)
    end
    return { replies.OK, retry == 0 and 1 or 0, remaining, reset, retry, taken }
end
