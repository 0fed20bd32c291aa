-- needs: arguments, pattern_keys, replies, streams
-- sb_bus_read: delivers messages of a group to a reader: first those that were delivered longer than `idle` ago and not
-- acknowledged, then new ones. A message after too many deliveries goes to the dead messages.
-- KEYS:    1 root of the stream
-- ARGV:    1 group · 2 reader · 3 most messages (1 to 500) · 4 idle (ms, 1 to 30 days) · 5 cursor among idle ones: the
--          answer of the last call, or '' · 6 most deliveries of a message (1 to 1000000, 0 = no limit) · 7 1 = another
--          program writes the stream, and may drop messages that the group has not got
-- Returns: {OK, next cursor, lost: dropped before delivery, last delivered id of the group ('' when all were claimed and 7
--          is not given), [[id, deliveries, [field, value, ...]], ...], with 7 the last delivered id before the call} ·
--          {GONE} no such group · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(messages), and O(pending), bounded, while messages are not acknowledged
local MAX_COUNT, MAX_IDLE, MAX_TRIES = 500, 30 * 86400000, 1000000
-- of ten times the wanted messages each: the many messages of a live reader hide those of a dead one for a short time only
local SWEEPS = 3
local KEEP_DEAD = 1000
local IDLE_READER_MS = 600000 -- ms after which a reader without pending messages is deleted
local CHECK_EVERY = 256 -- reads between two checks for idle readers
local START = '0-0'
local reads = 0

local function parse(ARGV)
    local call = { group = ARGV[1], reader = ARGV[2], cursor = ARGV[5] or '' }
    local has_names = streams.is_name(call.group) and streams.is_name(call.reader)
    arguments.need(has_names, 'a group and a reader have names of 1 to 512 bytes')
    call.count = arguments.need_count('how many messages', ARGV[3], 1, MAX_COUNT)
    call.idle = arguments.need_count('idle, in ms,', ARGV[4], 1, MAX_IDLE)
    if call.cursor == '' then call.cursor = START end
    arguments.need(streams.is_id(call.cursor), 'a cursor is an id')
    call.tries = arguments.need_count('tries', ARGV[6], 0, MAX_TRIES)
    call.foreign = ARGV[7] == '1'
    return call
end

-- Deletes readers without pending messages now and then: each makes every check of the group longer.
local function delete_idle_readers(key, call)
    reads = (reads + 1) % CHECK_EVERY
    if reads > 0 then return end
    for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', key, call.group)) do
        local info = {}
        for i = 1, #row, 2 do info[row[i]] = row[i + 1] end
        if info.pending == 0 and info.idle > IDLE_READER_MS then
            redis.call('XGROUP', 'DELCONSUMER', key, call.group, info.name)
        end
    end
end

-- Counts, once, what was dropped before the group got it; answers also the last delivered id.
local function count_lost(key, call)
    local group = streams.find_group(key, call.group)
    local missing = group.lag and group.read and group.lag - redis.call('XLEN', key) or 0
    if missing <= 0 then return 0, group.last end
    local position = string.format('%.0f', group.read + missing)
    redis.call('XGROUP', 'SETID', key, group.name, group.last, 'ENTRIESREAD', position)
    return missing, group.last
end

local function move_to_dead(root, call, id, times, fields)
    redis.call('XADD', pattern_keys.stream_dead(root), 'MAXLEN', KEEP_DEAD, '*', 'group', call.group, 'id', id,
        'deliveries', times, unpack(fields))
    redis.call('XACK', pattern_keys.stream_log(root), call.group, id)
end

-- Claims idle messages; answers them, the next cursor and how many were deleted. nil when there is no such group.
local function claim_idle(root, key, call)
    local found, cursor, gone = {}, call.cursor, 0
    for _ = 1, SWEEPS do
        local reply = redis.pcall('XAUTOCLAIM', key, call.group, call.reader, call.idle, cursor, 'COUNT', call.count - #found)
        if reply.err then
            if string.find(reply.err, '^NOGROUP') then return nil end
            error(reply)
        end
        cursor, gone = reply[1], gone + #(reply[3] or {})
        for _, entry in ipairs(reply[2]) do
            local id, fields = entry[1], entry[2]
            local times = redis.call('XPENDING', key, call.group, id, id, 1)[1][4]
            if call.tries > 0 and times > call.tries then
                move_to_dead(root, call, id, times - 1, fields)
            else
                found[#found + 1] = { id, times, fields }
            end
        end
        if cursor == START or #found >= call.count then break end
    end
    return found, cursor, gone
end

return function(KEYS, ARGV)
    local root, call = KEYS[1], parse(ARGV)
    local key = pattern_keys.stream_log(root)
    if call.tries > 0 then redis.call('XLEN', pattern_keys.stream_dead(root)) end -- throws before the first write
    local found, cursor, missing = claim_idle(root, key, call)
    if not found then return { replies.GONE } end
    local more, before = 0, ''
    if call.foreign then more, before = count_lost(key, call) end
    local wanted, last = call.count - #found, before
    local fresh = wanted > 0 and redis.call('XREADGROUP', 'GROUP', call.group, call.reader, 'COUNT', wanted, 'STREAMS', key, '>')
    for _, entry in ipairs(fresh and fresh[1][2] or {}) do
        found[#found + 1], last = { entry[1], 1, entry[2] }, entry[1]
    end
    if last == '' and #found == 0 then last = streams.find_group(key, call.group).last end
    delete_idle_readers(key, call)
    return { replies.OK, cursor, missing + more, last, found, before }
end
