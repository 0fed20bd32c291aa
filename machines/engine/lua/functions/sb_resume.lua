-- needs: arguments, commit, delivering, instances, keys, replies, timers
-- sb_resume: lets a suspended instance go on: its timers run again, and the messages that waited are applied in order.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 expect (version or '') · 3 actor · 4 reason (required) · 5 now (ms since the epoch, or '')
--          · 6 what becomes of timers: 'fire' (they keep their time, overdue ones fire at once) or 'shift' (each is moved
--          by as long as the instance was suspended)
-- Returns: {OK, '', '0', instance JSON} · {CONFLICT, version} · {NOINSTANCE} · {NOMACHINE} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse
-- Cost:    O(timers of the instance), and as sb_fire for each message that waited
local function shift(ctx, by)
    for _, timer in ipairs(timers.list(ctx)) do timer[2] = timer[2] + by end
    ctx.timers_changed = ctx.timers[1] ~= nil
end

local function catch_up(root, id, now)
    local key = keys.held(root, id)
    local waiting = redis.call('LRANGE', key, 0, -1)
    redis.call('DEL', key)
    for _, text in ipairs(waiting) do
        local message = cjson.decode(text)
        local ok, verdict, why = pcall(delivering.apply, root, message.kind, id, message.body, now)
        if not ok or verdict == 'failed' or verdict == 'fault' then
            redis.pcall('XADD', keys.log(root), 'MAXLEN', '~', 10000, '*', 'kind', 'message', 'name', 'refused', 'data', text,
                'instance', id, 'reason', tostring(why or verdict))
        end
    end
end

return function(KEYS, ARGV)
    local root, id, expect, policy = KEYS[1], ARGV[1], ARGV[2] or '', ARGV[6] or 'fire'
    local actor, reason = ARGV[3] or '', ARGV[4] or ''
    local bad = arguments.missing(id, 'the id') or arguments.misfit(expect, '', actor, reason, ARGV[5] or '')
    if not bad and not string.find(reason, '%S') then bad = 'to resume needs a reason' end
    if policy ~= 'fire' and policy ~= 'shift' then bad = bad or "overdue timers are to 'fire' or 'shift'" end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now = arguments.now(ARGV[5])
    local ctx, missing = instances.open(root, id, now)
    if not ctx then return missing end
    if expect ~= '' and tonumber(expect) ~= ctx.version then return { replies.CONFLICT, ctx.raw._version } end
    local since = ctx.raw._suspended
    if not since then return replies.instance(ctx) end
    ctx.raw._suspended, ctx.noted = nil, ctx.noted or {}
    ctx.noted._suspended = true
    if ctx.chart and policy == 'shift' then shift(ctx, math.max(0, now - tonumber(since))) end
    redis.call('ZCARD', keys.timers(root))
    local ok, fault = commit.step(ctx, '(resume)', actor, reason, '0')
    if not ok then return { replies.FAULT, fault } end
    if ctx.chart then
        for _, timer in ipairs(timers.list(ctx)) do redis.call('ZADD', keys.timers(root), timer[2], timer[1] .. ':' .. id) end
    end
    if redis.call('EXISTS', keys.held(root, id)) == 0 then return replies.instance(ctx) end
    catch_up(root, id, now)
    local after = instances.open(root, id, now)
    local reply = replies.instance(after or ctx)
    reply[5] = '1'
    return reply
end
