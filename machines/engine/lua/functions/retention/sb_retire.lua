-- needs: arguments, chart, deletion, history_entries, instances, keys, partition_log, pulse, replies, time_limit
-- needs: version_counters
-- sb_retire: lets go of finished instances, each with its history, index entries and jobs, if it is still the one that was
-- read: of the same revision and creation, finished and not suspended. Any other stays. Stops after some 2 ms.
-- KEYS:    1 root of the partition
-- ARGV:    1 actor · 2 reason · 3.. in turn an id, its revision and the ms of its creation (at most 200 instances) · last,
--          optional: 'unpacked', when the caller has read the histories by sb_history. Without it an instance stays whose
--          history has a packed entry: a caller that read the list itself has no copy that it can read
-- Returns: {OK, instances that went, instances that were looked at, µs it took, id that stayed, ...} · {NOMACHINE}
--          · {BADARG, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    O(fields + log(instances in the state)) for each instance
local MAX_INSTANCES, FIRST = 200, 3
local LIMIT_MS, CHECK_EVERY = 1, 8
local UNPACKED = 'unpacked'

local function check(ARGV)
    local count = #ARGV - FIRST + 1
    if ARGV[#ARGV] == UNPACKED and count % 3 == 1 then count = count - 1 end
    if count < 3 or count % 3 ~= 0 then return 'an instance is an id, a revision and the ms of its creation' end
    if count > 3 * MAX_INSTANCES then return 'at most ' .. MAX_INSTANCES .. ' instances' end
    return arguments.check('', '', ARGV[1], ARGV[2], '')
end

local function has_packed(root, id)
    local entries = redis.pcall('LRANGE', keys.history(root, id), 0, -1)
    for i = 1, #entries do
        if history_entries.is_packed(entries[i]) then return true end
    end
    return false
end

-- Removes an instance if it is finished and still of this revision and creation. Answers its program, or nil where it stays.
local function remove(root, id, revision, created)
    local ok, ctx = pcall(instances.open, root, id, 0)
    if not ok or not ctx or ctx.raw._suspended or not chart.is_finished(ctx) then return nil end
    if ctx.raw._version ~= revision or ctx.raw._created ~= created then return nil end
    return pcall(deletion.remove, ctx, false) and ctx.program or nil
end

-- One entry for the call: one for each instance would push all other entries out of the log.
local function report(root, count, machine, actor, reason)
    partition_log.append(root, 'kind', 'retired', 'name', 'retired', 'data', string.format('{"instances":%d}', count),
        'machine', machine, 'actor', actor, 'reason', reason)
    redis.pcall('HINCRBY', keys.meta(root), 'instances', -count)
    pulse.ring(root)
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    arguments.refuse(check(ARGV))
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    redis.call('XLEN', keys.log(root)) -- these throw before the first deletion
    redis.call('XLEN', keys.outbox(root))
    local elapsed = time_limit.measure()
    local reply, gone, looked, machine, versions = { replies.OK, 0, 0, 0 }, 0, 0, nil, {}
    local is_unpacked = (#ARGV - FIRST + 1) % 3 == 1
    for i = FIRST, #ARGV - 2, 3 do
        local may_go = is_unpacked or not has_packed(root, ARGV[i])
        local program = may_go and remove(root, ARGV[i], ARGV[i + 1], ARGV[i + 2])
        looked = looked + 1
        if program then
            gone, machine = gone + 1, program.machine
            versions[program.version] = (versions[program.version] or 0) + 1
        else
            reply[#reply + 1] = ARGV[i]
        end
        if looked % CHECK_EVERY == 0 and elapsed() > LIMIT_MS then break end
    end
    for version, count in pairs(versions) do version_counters.remove(root, version, count) end
    if gone > 0 then report(root, gone, machine, ARGV[1], ARGV[2]) end
    reply[2], reply[3], reply[4] = gone, looked, math.floor(elapsed() * 1000)
    return reply
end
