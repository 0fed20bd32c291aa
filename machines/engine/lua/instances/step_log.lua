-- needs: keys, partition_log
-- The steps of a partition in its log, while a reader asked for them: `steps` of the partition's meta hash is the ms until
-- which they are written. The answer is remembered for a second, since every step asks.
local step_log = {}

local REMEMBER_MS, MOST_ROOTS = 1000, 10000
local known, count = {}, 0

-- Remembers until when steps are logged. `now`: ms of the server's clock.
local function remember(root, now, till)
    if not known[root] then
        if count >= MOST_ROOTS then known, count = {}, 0 end
        count = count + 1
    end
    known[root] = { at = now, till = till }
end

local function read(root)
    local found = redis.pcall('HGET', keys.meta(root), 'steps')
    return type(found) == 'string' and tonumber(found) or 0
end

-- Tells whether the steps of a partition are logged. `now`: ms of the server's clock.
function step_log.is_on(root, now)
    local entry = known[root]
    if not entry or now < entry.at or now - entry.at >= REMEMBER_MS then
        remember(root, now, read(root))
        entry = known[root]
    end
    return entry.till > now
end

-- Has steps logged until `till` ms, 0 for not. Answers whether they were logged up to now.
function step_log.set(root, now, till)
    local before = read(root)
    if till > 0 then
        redis.call('HSET', keys.meta(root), 'steps', string.format('%.0f', till))
    else
        redis.call('HDEL', keys.meta(root), 'steps')
    end
    remember(root, now, till)
    return before > now
end

-- Appends one step. `state`: its leaf states as the history has them, JSON of a text or of a list of texts.
function step_log.append(root, machine, id, revision, event, state)
    partition_log.append(root, 'kind', 'step', 'name', event, 'data', state, 'machine', machine, 'instance', id,
        'version', revision)
end

return step_log
