-- needs: arguments, pattern_keys, replies, streams
-- sb_bus_read: gives a reader of a group messages: first those that others (or it itself) took longer than `idle` ago and did
-- not acknowledge, then new ones. One that was given out too often goes to the dead and is given to nobody.
-- KEYS:    1 root of the stream
-- ARGV:    1 group · 2 reader · 3 most messages (1 to 500) · 4 idle (ms, 1 to 30 days) · 5 where to look for idle ones: what
--          the last call answered, or '' · 6 how often a message is given out (1 to 1000000, 0 = without end)
--          · 7 1 = somebody else writes the stream, and may drop what the group has not got
-- Returns: {OK, where to look next, lost: dropped before the group had them, id up to which the group has been given messages
--          ('' where it was claimed alone and 7 is not given), [[id, how often it was given out, [field, value, ...]], ...],
--          with 7 that id as it was before} · {GONE} no such group · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(messages), and O(pending), bounded, while some are not acknowledged
local MOST, MAX_IDLE, MAX_TRIES = 500, 30 * 86400000, 1000000
local SWEEPS = 3 -- of ten times the messages asked for each: whoever holds many does not hide those of the dead for long
local KEEP_DEAD = 1000
local FORGOTTEN = 600000 -- ms after which a reader that holds nothing and asks for nothing is struck off
local STRIKES = 256 -- reads between two looks at who does not read any more
local START = '0-0'
local reads = 0

local function read(ARGV)
    local call = { group = ARGV[1], reader = ARGV[2], cursor = ARGV[5] or '' }
    if not streams.is_name(call.group) or not streams.is_name(call.reader) then
        return nil, 'a group and a reader have names of 1 to 512 bytes'
    end
    call.count = arguments.parse_count(ARGV[3], 1, MOST)
    if not call.count then return nil, 'a call gives 1 to ' .. MOST .. ' messages' end
    call.idle = arguments.parse_count(ARGV[4], 1, MAX_IDLE)
    if not call.idle then return nil, 'idle is in ms, a whole number from 1 to 30 days' end
    if call.cursor == '' then call.cursor = START end
    if not streams.is_id(call.cursor) then return nil, 'where to look is an id' end
    call.tries = arguments.parse_count(ARGV[6], 0, MAX_TRIES)
    if not call.tries then return nil, 'tries is a whole number from 0 to ' .. MAX_TRIES end
    call.foreign = ARGV[7] == '1'
    return call
end

-- Those who once read and hold nothing make every look at the group longer: now and then they are struck off.
local function strike_off(key, call)
    reads = (reads + 1) % STRIKES
    if reads > 0 then return end
    for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', key, call.group)) do
        local told = {}
        for i = 1, #row, 2 do told[row[i]] = row[i + 1] end
        if told.pending == 0 and told.idle > FORGOTTEN then redis.call('XGROUP', 'DELCONSUMER', key, call.group, told.name) end
    end
end

-- What was dropped before the group got it, counted once; and up to which id it was given messages.
local function lost(key, call)
    local group = streams.find_group(key, call.group)
    local missing = group.lag and group.read and group.lag - redis.call('XLEN', key) or 0
    if missing <= 0 then return 0, group.last end
    local position = string.format('%.0f', group.read + missing)
    redis.call('XGROUP', 'SETID', key, group.name, group.last, 'ENTRIESREAD', position)
    return missing, group.last
end

local function bury(root, call, id, times, fields)
    redis.call('XADD', pattern_keys.stream_dead(root), 'MAXLEN', KEEP_DEAD, '*', 'group', call.group, 'id', id,
        'deliveries', times, unpack(fields))
    redis.call('XACK', pattern_keys.stream_log(root), call.group, id)
end

-- Answers those it has claimed, where to look next, and how many were gone; nil where there is no such group.
local function claim(root, key, call)
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
                bury(root, call, id, times - 1, fields)
            else
                found[#found + 1] = { id, times, fields }
            end
        end
        if cursor == START or #found >= call.count then break end
    end
    return found, cursor, gone
end

return function(KEYS, ARGV)
    local call, bad = read(ARGV)
    if not call then return { replies.BAD_ARGUMENT, bad } end
    local root = KEYS[1]
    local key = pattern_keys.stream_log(root)
    if call.tries > 0 then redis.call('XLEN', pattern_keys.stream_dead(root)) end -- throws before the first write
    local found, cursor, missing = claim(root, key, call)
    if not found then return { replies.GONE } end
    local more, before = 0, ''
    if call.foreign then more, before = lost(key, call) end
    local wanted, last = call.count - #found, before
    local fresh = wanted > 0 and redis.call('XREADGROUP', 'GROUP', call.group, call.reader, 'COUNT', wanted, 'STREAMS', key, '>')
    for _, entry in ipairs(fresh and fresh[1][2] or {}) do
        found[#found + 1], last = { entry[1], 1, entry[2] }, entry[1]
    end
    if last == '' and #found == 0 then last = streams.find_group(key, call.group).last end
    strike_off(key, call)
    return { replies.OK, cursor, missing + more, last, found, before }
end
