-- needs: arguments, chart, commit, core, instances, json, keys, payloads, replies, steps, stopwatch, timers, values
-- sb_tick: fires the timers of a partition whose time has come, oldest first, each as a step of its own.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 limit (1..1000)
-- Returns: {OK, fired, postponed, next due ms or '', messages in the outbox, now in ms} · {BADARG, why}; a call that took long
--          leaves some that are due
-- Notifies: <root>:pulse when something moved
-- Cost:    O(log(timers)) when none is due, whatever their number; else as sb_fire for each that is
local POSTPONED_MS = 60000 -- one that cannot be carried out now is tried again; it stays overdue meanwhile
local BUDGET_MS = 20
local ACTOR = 'timer'

-- An event that waited: hands it to whoever it is for. Answers what the history keeps of it, too.
local function send(ctx, timer)
    local payload = json.decode(timer[6])
    local taken, why = chart.forward(ctx, timer[7], timer[3], payload, timer[8] == 1 and timer[5] or nil)
    return taken, why, values.kind(payload) == 'object' and payloads.note(payload) or '0'
end

-- What was neither a step nor a message is kept all the same: the timer is over.
local function carry_out(ctx, timer)
    local taken, why, noted
    ctx.timers_changed = nil -- that this one is over makes no step
    if timer[4] ~= 0 then
        taken, why = core.step(ctx, timer[3], nil, { type = 'platform' })
    else
        taken, why, noted = send(ctx, timer)
    end
    if taken == nil then return nil, why end
    ctx.timers_changed = true
    local ok, fault
    if taken or ctx.numbered then
        ok, fault = commit.step(ctx, timer[3], ACTOR, '', noted or '0')
    else
        ok, fault = commit.keep(ctx)
    end
    return ok and 'fired' or nil, fault
end

-- 'fired', 'gone' (disarmed since), 'early' and when it is due, or nil and why.
local function fire(root, member, now)
    local id, instance = timers.named(member)
    if not id then return 'gone' end
    local ctx, missing = instances.open(root, instance, now)
    if not ctx then
        if missing[2] then return nil, missing[2] end
        return 'gone'
    end
    local timer = not ctx.raw._suspended and not ctx.raw._done and timers.take(ctx, id)
    if not timer then return 'gone' end
    if timer[2] > now then return 'early', timer[2] end
    return carry_out(ctx, timer)
end

local function postpone(root, member, now, why)
    redis.call('ZADD', keys.late(root), now + POSTPONED_MS, member)
    redis.call('ZREM', keys.timers(root), member)
    redis.pcall('XADD', keys.log(root), 'MAXLEN', '~', 10000, '*', 'kind', 'timer', 'name', 'postponed', 'data',
        json.encode(why), 'instance', string.match(member, ':(.*)$') or '')
end

-- Works off one list of due times; `tally` counts what was fired and what was put off.
local function work_off(root, key, now, tally)
    local due = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, tally.limit - tally.fired - tally.postponed)
    for _, member in ipairs(due) do
        if tally.fired + tally.postponed > 0 and tally.over() then return end
        local ok, outcome, extra = pcall(fire, root, member, now)
        if ok and outcome == 'fired' then
            tally.fired = tally.fired + 1
        elseif ok and outcome == 'gone' then
            redis.call('ZREM', key, member)
        elseif ok and outcome == 'early' then
            redis.call('ZREM', key, member)
            redis.call('ZADD', keys.timers(root), extra, member)
        else
            postpone(root, member, now, ok and extra or type(outcome) == 'table' and outcome.err or values.message(outcome))
            tally.postponed = tally.postponed + 1
        end
    end
end

local function next_due(root)
    local first = redis.call('ZRANGE', keys.timers(root), 0, 0, 'WITHSCORES')[2]
    local late = redis.call('ZRANGE', keys.late(root), 0, 0, 'WITHSCORES')[2]
    if first and late then return tonumber(late) < tonumber(first) and late or first end
    return first or late or ''
end

return function(KEYS, ARGV)
    local root, limit = KEYS[1], arguments.count(ARGV[2], 1, 1000)
    local bad = arguments.misfit('', '', '', '', ARGV[1] or '')
    if not limit then bad = 'limit is 1 to 1000' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, tally = arguments.now(ARGV[1]), { fired = 0, postponed = 0, limit = limit, over = stopwatch.start(BUDGET_MS) }
    redis.call('ZCARD', keys.late(root)) -- throws where it could not be written
    work_off(root, keys.timers(root), now, tally)
    if tally.fired + tally.postponed < limit then work_off(root, keys.late(root), now, tally) end
    return { replies.OK, tally.fired, tally.postponed, next_due(root), redis.call('XLEN', keys.outbox(root)), now }
end
