-- needs: arguments, pattern_keys, replies, streams
-- sb_bus_ack: acknowledges messages for a group and trims those that no group needs; or gives messages back to the group at
-- once.
-- KEYS:    1 root of the stream
-- ARGV:    1 ack | back · 2 group · 3 reader (with back), or '' · 4 most messages the stream keeps, or '' · 5... ids, 1 to
--          500
-- Returns: {OK, how many were acknowledged or given back; the others were acknowledged before, or are another reader's} ·
--          {GONE} no such group · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(ids), and O(groups) for a trim
local MAX_IDS, MAX_LENGTH = 500, 1000000
local LONG_AGO = 30 * 86400000 -- ms: idle for longer than any reader asks for

local function parse(ARGV)
    local call = { kind = ARGV[1] or '', group = ARGV[2], reader = ARGV[3] or '', ids = { unpack(ARGV, 5) } }
    arguments.need(call.kind == 'ack' or call.kind == 'back', 'the kinds are ack and back')
    arguments.need(streams.is_name(call.group), 'a group has a name of 1 to 512 bytes')
    arguments.need(call.kind == 'ack' or streams.is_name(call.reader), 'a reader has a name of 1 to 512 bytes')
    call.most = arguments.parse_count(ARGV[4], 1, MAX_LENGTH)
    arguments.need(call.most or (ARGV[4] or '') == '', 'most is a whole number from 1 to ' .. MAX_LENGTH)
    arguments.need(call.ids[1], 'a call takes 1 to ' .. MAX_IDS .. ' ids')
    for _, id in ipairs(call.ids) do arguments.need(streams.is_id(id), 'no id: ' .. string.sub(id, 1, 60)) end
    return call
end

local function give_back(key, call)
    local count = 0
    for _, id in ipairs(call.ids) do
        local held = redis.call('XPENDING', key, call.group, id, id, 1)[1]
        if held and held[2] == call.reader then
            redis.call('XCLAIM', key, call.group, call.reader, 0, id, 'IDLE', LONG_AGO, 'JUSTID')
            count = count + 1
        end
    end
    return count
end

return function(KEYS, ARGV)
    arguments.need(#ARGV <= MAX_IDS + 4, 'a call takes 1 to ' .. MAX_IDS .. ' ids')
    local call = parse(ARGV)
    local key = pattern_keys.stream_log(KEYS[1])
    if call.kind == 'back' then
        if not streams.find_group(key, call.group) then return { replies.GONE } end
        return { replies.OK, give_back(key, call) }
    end
    local count = redis.call('XACK', key, call.group, unpack(call.ids))
    if count == 0 and not streams.find_group(key, call.group) then return { replies.GONE } end
    if call.most then streams.trim(key, call.most) end
    return { replies.OK, count }
end
