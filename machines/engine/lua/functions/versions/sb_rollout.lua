-- needs: arguments, keys, partition_log, pulse, replies, rollouts, version_policy
-- sb_rollout: changes which version new instances get. The first partition of the machine decides; sb_rollout_copy brings its
--          change to the others.
-- KEYS:    1 root of the first partition
-- ARGV:    1 start | set | stop | finish | pin | withdraw | allow · 2 version; '' for set, stop and finish, and for pin to
--          unpin · 3 for start and set, the share in hundredths of a percent (0 to 9999); for withdraw, the version that
--          becomes current, or '' · 4 JSON object of settings (guard, marks, guarded, figures), or '' · 5 turn that the
--          caller saw, or '' · 6 actor · 7 reason · 8 now (ms, or '')
-- Returns: {OK, turn} · {VERSIONS, code, why} the versions do not allow it · {CONFLICT, turn} · {NOMACHINE} · {BADARG, why} ·
--          {FAULT, why}
-- Notifies: <root>:pulse
-- Cost:    O(1); O(queues + size of a definition) where another version becomes current
local MAX_VERSION = 1e9
local ACTIONS = { start = true, set = true, stop = true, finish = true, pin = true, withdraw = true, allow = true }
local NAMED = { start = true, withdraw = true, allow = true }


local function parse(ARGV)
    local call = { action = ARGV[1], version = ARGV[2] or '', other = ARGV[3] or '', turn = ARGV[5] or '',
        actor = ARGV[6] or '', reason = ARGV[7] or '' }
    arguments.need(ACTIONS[call.action or ''], 'a change is start, set, stop, finish, pin, withdraw or allow')
    arguments.refuse(arguments.check(call.turn, '', call.actor, call.reason, ARGV[8] or ''))
    for _, number in ipairs({ call.version, call.action == 'withdraw' and call.other or '' }) do
        arguments.need(number == '' or arguments.parse_count(number, 1, MAX_VERSION), 'a version is a whole number from 1')
    end
    arguments.need(call.version ~= '' or not NAMED[call.action], 'the version is missing')
    if call.action == 'start' or call.action == 'set' then call.share = version_policy.parse_share(call.other) end
    call.settings, call.now = version_policy.parse_settings(ARGV[4]), arguments.read_now(ARGV[8] or '')
    return call
end

local CHANGES = {
    start = function(root, policy, call)
        local def = redis.call('HGET', keys.meta(root), 'def:' .. call.version)
        if not def then return version_policy.refuse('SB420', 'version ' .. call.version .. ' is not published') end
        if def == policy.current then
            return version_policy.refuse('SB626', 'version ' .. call.version .. ' is the current one already')
        end
        return rollouts.start(policy, def, call.share, call.settings, call)
    end,
    set = function(_, policy, call) return rollouts.set(policy, call.share, call.settings, call) end,
    stop = function(_, policy, call) return rollouts.stop(policy, call.settings, call) end,
    finish = function(_, policy) return rollouts.finish(policy) end,
    pin = function(root, policy, call) return rollouts.pin(root, policy, call.version, call) end,
    withdraw = function(root, policy, call) return rollouts.withdraw(root, policy, call.version, call.other, call) end,
    allow = function(root, policy, call) return rollouts.allow(root, policy, call.version) end,
}

-- `current`: the definition that became current, if any.
local function encode_change(policy, call, current)
    local rollout = policy.rollout
    local version = call.version ~= '' and call.version or string.match(rollout and rollout.def or current or '', '^%d+')
    return cjson.encode({ version = tonumber(version or ''), percent = rollout and rollout.share / 100,
        by_guard = call.settings.guarded, actor = call.actor, reason = call.reason })
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    arguments.refuse(arguments.check_root(root))
    local call = parse(ARGV)
    arguments.need(version_policy.is_first(root), 'the first partition decides')
    local policy = version_policy.read(root)
    if not policy.current then return { replies.NO_MACHINE } end
    if call.turn ~= '' and tonumber(call.turn) ~= policy.turn then return { replies.CONFLICT, tostring(policy.turn) } end
    local refusal, current = CHANGES[call.action](root, policy, call)
    if refusal then return refusal end
    redis.call('XLEN', keys.log(root)) -- throws before any write when the key has another type
    local why = current and version_policy.make_current(root, current)
    if why then return { replies.FAULT, why } end
    version_policy.write(root, policy)
    partition_log.append(root, 'kind', 'version', 'name', call.action, 'data',
        encode_change(policy, call, current), 'actor', call.actor, 'reason', call.reason)
    pulse.ring(root)
    return { replies.OK, tostring(policy.turn + 1) }
end
