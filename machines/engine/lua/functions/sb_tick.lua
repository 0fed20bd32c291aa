-- needs: arguments, chart, commit, core, instances, json, keys, payloads, replies, steps, timers, values
-- sb_tick: fires the timers of a partition whose time has come, oldest first, each as a step of its own.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 limit (1..1000)
-- Returns: {OK, fired, postponed, next due ms or '', messages in the outbox} · {BADARG, why}
-- Notifies: <root>:pulse when something moved
-- Cost:    O(log(timers)) when none is due, whatever their number; else as sb_fire for each that is
local POSTPONED_MS = 60000 -- one that cannot be carried out now is tried again; it stays overdue meanwhile
local ACTOR = 'timer'

-- A message or event that waited: hands it to whoever it is for.
local function send(ctx, timer)
    local payload = json.decode(timer[6])
    return chart.forward(ctx, timer[7], timer[3], payload, timer[8] == 1 and timer[5] or nil)
end

-- 'fired', 'gone' (disarmed since), or nil and why.
local function fire(root, member, now)
    local id, instance = string.match(member, '^([%d.]+):(.*)$')
    local ctx, missing = instances.open(root, instance or '', now)
    if not ctx then
        if missing[2] then return nil, missing[2] end
        return 'gone'
    end
    local timer = not ctx.raw._suspended and not ctx.raw._done and timers.take(ctx, id)
    if not timer then return 'gone' end
    local taken, why
    if timer[4] ~= 0 then
        taken, why = core.step(ctx, timer[3], nil, { type = 'platform' })
    else
        taken, why = send(ctx, timer)
    end
    if taken == nil then return nil, why end
    if taken == false then
        local ok, fault = commit.keep(ctx)
        return ok and 'fired' or nil, fault
    end
    local ok, fault = commit.step(ctx, timer[3], ACTOR, '', payloads.note(type(ctx.payload) == 'table' and ctx.payload or {}))
    return ok and 'fired' or nil, fault
end

local function postpone(root, member, now, why)
    redis.call('ZADD', keys.timers(root), now + POSTPONED_MS, member)
    redis.pcall('XADD', keys.log(root), 'MAXLEN', '~', 10000, '*', 'kind', 'timer', 'name', 'postponed', 'data',
        json.encode(why), 'instance', string.match(member, ':(.*)$') or '')
end

return function(KEYS, ARGV)
    local root, limit = KEYS[1], arguments.count(ARGV[2], 1, 1000)
    local bad = arguments.misfit('', '', '', '', ARGV[1] or '')
    if not limit then bad = 'limit is 1 to 1000' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, key = arguments.now(ARGV[1]), keys.timers(root)
    local fired, postponed = 0, 0
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, limit)) do
        local ok, outcome, why = pcall(fire, root, member, now)
        if ok and outcome == 'fired' then
            fired = fired + 1
        elseif ok and outcome == 'gone' then
            redis.call('ZREM', key, member)
        else
            postpone(root, member, now, ok and why or values.message(outcome))
            postponed = postponed + 1
        end
    end
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    return { replies.OK, fired, postponed, first[2] or '', redis.call('XLEN', keys.outbox(root)) }
end
