-- needs: keys, streams
-- The log of a partition: what machines emit and log, and what was done to it. It keeps the newest entries, and beyond
-- those what a group of readers has not acknowledged, up to a bound.
local partition_log = {}

local KEEP = 10000
local BOUND = 10 * KEEP -- what nobody reads goes after all: memory is bounded
local EVERY = 64 -- entries that this server has written to a log between two looks at what may go
local MOST_LOGS = 10000

local written, logs = {}, 0

-- Is it time to look? Counted here and not asked of the log: a command costs as much as a third of writing the entry.
local function is_time(key)
    local count = written[key]
    if not count then
        if logs >= MOST_LOGS then return true end -- more than are counted: each of those is asked every time
        count, logs = 0, logs + 1
    end
    written[key] = (count + 1) % EVERY
    return written[key] == 0
end

-- Fields and values follow. Throws, with nothing written, where the log is of another type.
function partition_log.write(root, ...)
    local key = keys.log(root)
    redis.call('XADD', key, '*', ...)
    if is_time(key) and redis.call('XLEN', key) > KEEP then streams.trim(key, KEEP, BOUND) end
end

return partition_log
