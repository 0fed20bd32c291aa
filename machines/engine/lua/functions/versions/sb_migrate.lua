-- needs: arguments, commit, keys, migration, migration_writes, pulse, replies, time_limit, timers, version_counters, way_back
-- sb_migrate: moves instances to another version of their machine by a plan, each whole or not at all. What a plan does with
-- an instance is decided by what the instance is now. One that has the version already stays as it is, so that a call may
-- be repeated.
-- KEYS:    1 root of the partition
-- ARGV:    1 program of a plan (JSON) · 2 'move', 'back' (restores what an undo record has, else as move), or 'move again'
--          and 'back again' after a call whose reply was lost · 3 actor · 4 reason · 5 now (ms since the epoch, or '')
--          · 6 id, then further ones (at most 500)
-- Returns: {OK, how many were processed, outcome, version, states, code, reason, ...} five for each in order: outcome is
--          moves, kept, refused, suspends, already or gone; version and leaf states (a line each) are those before; the rest
--          of the ids is for a later call; in a call that comes again, the reason of already is the ms at which this plan
--          moved the instance · {STALE, why}: a version of the plan is not published here with this content ·
--          {NOINSTANCE}, {MOVED, ...} as sb_fire, where the first id is elsewhere · {NOMACHINE} · {BADARG, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    O(fields of each instance + log(instances in its state)); for some ms
local MAX_IDS = 500
local MODES = { move = true, back = true, ['move again'] = true, ['back again'] = true }

-- Suspends an instance that has no place, as the plan asks.
local function suspend(result, actor, reason, now)
    local ctx = result.before
    ctx.raw._suspended, ctx.changed_meta._suspended = string.format('%.0f', now), true
    redis.call('ZCARD', keys.timers(ctx.program.root)) -- throws before any write when a key has another type
    redis.call('ZCARD', keys.late(ctx.program.root))
    local ok, fault = commit.write_step(ctx, '(suspend)', actor, reason ~= '' and reason or result.reason, '0')
    if not ok then return nil, fault end
    for _, timer in ipairs(timers.read_list(ctx)) do timers.unschedule(ctx.program.root, ctx.id, timer[1]) end
    return true
end

-- Answers the ms at which this plan moved the instance, if that was its latest step.
local function find_move(plan, root, id)
    local ok, step = pcall(cjson.decode, redis.call('LRANGE', keys.history(root, id), -1, -1)[1] or '')
    local is_move = ok and type(step) == 'table' and step[3] == '(migrate)' and type(step[8]) == 'table'
    return is_move and step[8].plan == plan.spec.id and string.format('%.0f', step[2]) or nil
end

local function process(plan, root, id, mode, call)
    local result, missing
    if mode == 'back' then result, missing = way_back.evaluate(plan, root, id, call.now)
    else result, missing = migration.evaluate(plan, root, id, call.now) end
    if not result then
        if missing[1] == replies.NO_INSTANCE then
            return { outcome = 'gone', code = 'SB421', reason = 'there is no such instance' }
        end
        return nil, missing
    end
    if result.outcome == 'already' and call.is_again then result.reason = find_move(plan, root, id) end
    local raw = result.before and result.before.raw or {}
    result.version, result.states = string.match(raw._def or '', '^%d*'), raw._state
    local ok, fault = true, nil
    if result.outcome == 'moves' then
        ok, fault = migration_writes.write(result, call.actor, call.reason, call.clock)
    elseif result.outcome == 'suspends' then
        ok, fault = suspend(result, call.actor, call.reason, call.now)
    end
    if not ok then result.outcome, result.code, result.reason = 'refused', 'SB619', fault end
    return result
end

local function parse(ARGV)
    local call = { actor = ARGV[3] or '', reason = ARGV[4] or '' }
    arguments.need(MODES[ARGV[2] or ''], "a mode is 'move' or 'back', 'move again' or 'back again'")
    arguments.need(ARGV[6], 'the id is missing')
    arguments.refuse(arguments.check('', '', call.actor, call.reason, ARGV[5] or ''))
    arguments.need(#ARGV <= MAX_IDS + 5, 'at most ' .. MAX_IDS .. ' ids')
    call.now, call.clock = arguments.read_now(ARGV[5])
    call.clock = call.clock or arguments.read_now('')
    return call
end

return function(KEYS, ARGV)
    local root, mode = KEYS[1], ARGV[2]
    local call = parse(ARGV)
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local plan, why, is_stale = migration.compile(root, ARGV[1])
    if not plan then return { is_stale and replies.STALE or replies.BAD_ARGUMENT, why } end
    call.is_again, mode = string.find(mode, 'again', 1, true) ~= nil, string.match(mode, '^%a+')
    local reply, is_over, done, moved = { replies.OK, 0 }, time_limit.start(), 0, {}
    redis.call('HLEN', keys.versions(root)) -- throws before any write when the key has another type
    migration_writes.record_plan(plan)
    for i = 6, #ARGV do
        local result, elsewhere = process(plan, root, ARGV[i], mode, call)
        if not result then
            if done == 0 then return elsewhere end
            break
        end
        done = done + 1
        if result.outcome == 'moves' then moved[result.version] = (moved[result.version] or 0) + 1 end
        local at = #reply
        reply[at + 1], reply[at + 2], reply[at + 3] = result.outcome, result.version or '', result.states or ''
        reply[at + 4], reply[at + 5] = result.code or '', result.reason or ''
        if is_over() then break end
    end
    reply[2] = done
    for version, count in pairs(moved) do version_counters.move(root, version, plan.target.version, count) end
    pulse.ring(root, call.clock)
    return reply
end
