-- needs: keys, version_policy
-- Changes of the policy of versions, each checked first: roll-outs, pins, withdrawn versions. A change takes the policy, its
-- arguments and {actor, reason, now}; it answers nil, or the reply of its refusal, and then nothing is changed.
local rollouts = {}

local match = string.match

local function version_of(def)
    return match(def, '^%d+')
end

local function find_version(root, version)
    local def = redis.call('HGET', keys.meta(root), 'def:' .. version)
    if def then return def end
    return nil, version_policy.refuse('SB420', 'version ' .. version .. ' is not published')
end

local function check_withdrawn(policy, def)
    if not policy.withdrawn[def] then return nil end
    return version_policy.refuse('SB625', 'version ' .. version_of(def) .. ' is withdrawn: no new instance gets it')
end

local function check_active(policy)
    if policy.rollout then return nil end
    return version_policy.refuse('SB626', 'no version is rolled out')
end

-- Starts a roll-out of a stored version; one that is under way is replaced. `share`: hundredths of a percent; `settings`:
-- {guard, marks}.
function rollouts.start(policy, def, share, settings, by)
    if policy.pin then
        return version_policy.refuse('SB627', 'version ' .. version_of(policy.current) .. ' is pinned: unpin it first')
    end
    local refusal = check_withdrawn(policy, def)
    if refusal then return refusal end
    policy.rollout = { share = share, def = def, base = policy.current, since = by.now, changed = by.now, actor = by.actor,
        reason = by.reason, guard = settings.guard, marks = settings.marks }
    return nil
end

-- Raises or lowers the share. A roll-out that was stopped goes on.
function rollouts.set(policy, share, settings, by)
    local refusal = check_active(policy) or check_withdrawn(policy, policy.rollout.def)
    if refusal then return refusal end
    local rollout = policy.rollout
    rollout.share, rollout.changed, rollout.actor, rollout.reason = share, by.now, by.actor, by.reason
    rollout.ended, rollout.guarded, rollout.figures = nil, nil, nil
    if settings.guard ~= nil then rollout.guard = settings.guard end
    if settings.marks then rollout.marks = settings.marks end
    if share == 0 then rollout.ended = by.now end
    return nil
end

-- Stops the roll-out: new instances get the base version. `settings`: {guarded, figures} where the guard did it.
function rollouts.stop(policy, settings, by)
    local refusal = check_active(policy)
    if refusal then return refusal end
    local rollout = policy.rollout
    if rollout.share == 0 and rollout.ended then return nil end
    rollout.share, rollout.ended, rollout.changed, rollout.actor, rollout.reason = 0, by.now, by.now, by.actor, by.reason
    rollout.guarded, rollout.figures = settings.guarded, settings.figures
    return nil
end

-- Ends the roll-out: its version becomes the current one. Answers its definition as the second result.
function rollouts.finish(policy)
    local refusal = check_active(policy) or check_withdrawn(policy, policy.rollout.def)
    if refusal then return refusal end
    local def = policy.rollout.def
    policy.rollout = nil
    return nil, def
end

-- Pins a version: it is current until it is unpinned, whatever is published. '' unpins. The second result becomes current.
function rollouts.pin(root, policy, version, by)
    if version == '' then
        local pin = policy.pin
        policy.pin = nil
        return nil, pin and pin.next
    end
    local def, missing = find_version(root, version)
    local refusal = missing or check_withdrawn(policy, def)
    if refusal then return refusal end
    if policy.rollout and policy.rollout.share > 0 then
        local why = 'version ' .. version_of(policy.rollout.def) .. ' is rolled out: stop or finish that first'
        return version_policy.refuse('SB627', why)
    end
    policy.pin = { def = def, next = policy.pin and policy.pin.next or policy.current, since = by.now, actor = by.actor,
        reason = by.reason }
    return nil, def
end

-- Answers the definition that takes the place of the current or pinned one when that is withdrawn.
local function find_other(root, policy, def, other)
    if other ~= '' then
        local found, missing = find_version(root, other)
        if missing then return nil, missing end
        local refusal = found ~= def and check_withdrawn(policy, found)
        if refusal then return nil, refusal end
        if found ~= def then return found end
    end
    local why = 'version ' .. version_of(def) .. ' is current: name the version that takes its place'
    return nil, version_policy.refuse('SB628', why)
end

-- Withdraws a version; its roll-out stops. `other`: the version that becomes current where the current one is withdrawn.
function rollouts.withdraw(root, policy, version, other, by)
    local def, missing = find_version(root, version)
    if missing then return missing end
    if policy.withdrawn[def] then return nil end
    local next_current, refusal
    if policy.current == def or policy.pin and policy.pin.next == def then
        next_current, refusal = find_other(root, policy, def, other)
        if refusal then return refusal end
    end
    policy.withdrawn[def] = { since = by.now, actor = by.actor, reason = by.reason }
    local rollout = policy.rollout
    if rollout and rollout.def == def and rollout.share > 0 then
        rollouts.stop(policy, {}, { now = by.now, actor = by.actor, reason = 'version ' .. version .. ' was withdrawn' })
    elseif rollout and rollout.base == def then
        rollout.base = next_current
    end
    if policy.pin and policy.pin.next == def then policy.pin.next = next_current end
    if policy.pin and policy.pin.def == def then policy.pin = nil end
    return nil, policy.current == def and next_current or nil
end

-- Takes a withdrawal back.
function rollouts.allow(root, policy, version)
    local def, missing = find_version(root, version)
    if missing then return missing end
    policy.withdrawn[def] = nil
    return nil
end

return rollouts
