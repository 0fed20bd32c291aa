-- needs: keys, streams
-- The log of a partition, a stream: what instances emit and log, and what operators did. It keeps the newest entries, and
-- older ones that a consumer group has not acknowledged, up to a bound.
local partition_log = {}

local KEEP_ENTRIES = 10000
local MAX_ENTRIES = 10 * KEEP_ENTRIES -- unread entries are dropped beyond this: memory is bounded
local TRIM_EVERY = 64 -- appended entries between two checks of the length
local MOST_LOGS = 10000

local appended, log_count = {}, 0

-- Tells whether to check the length. Counting here is cheaper than asking Redis: a command costs a third of appending an
-- entry.
local function is_trim_due(key)
    local count = appended[key]
    if not count then
        if log_count >= MOST_LOGS then return true end -- more logs than are counted: these are checked every time
        count, log_count = 0, log_count + 1
    end
    appended[key] = (count + 1) % TRIM_EVERY
    return appended[key] == 0
end

-- Appends an entry of the given fields and values. Throws before writing when the key has another type.
function partition_log.append(root, ...)
    local key = keys.log(root)
    redis.call('XADD', key, '*', ...)
    if is_trim_due(key) and redis.call('XLEN', key) > KEEP_ENTRIES then streams.trim(key, KEEP_ENTRIES, MAX_ENTRIES) end
end

return partition_log
