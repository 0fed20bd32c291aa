-- needs: arguments, data_indexes, instances, keys, programs, pulse, replies, time_limit
-- sb_reindex: adds instances that are older than the declaration of an indexed field to its index; at last, marks the index
-- as complete.
-- KEYS:    1 root of the partition
-- ARGV:    1 '' for all ids, 'slice' for as many as some ms allow · 2.. ids (at most 1000) · or 1 the fields that are
--          complete now, as sb_weigh answers them
-- Returns: {OK, how many were read, the first ones} · {NOMACHINE} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse when the fields are complete
-- Cost:    O(indexed fields * log(instances)) for each id
local MAX_IDS, MAX_FIELDS = 1000, 16384 -- bytes of the names
local SLICE = 'slice'

local function mark_complete(root, done)
    local listed = data_indexes.read_list(root)
    for word in string.gmatch(done, '%S+') do
        local name = string.match(word, '^(.+):0$')
        if name then listed = data_indexes.complete_list(listed, name) end
    end
    redis.call('HSET', keys.meta(root), 'by', listed)
    programs.drop_outdated(root)
    pulse.ring(root)
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    arguments.need(ARGV[1], 'the fields that are complete are missing')
    arguments.need(#ARGV[1] <= MAX_FIELDS, 'the fields have at most ' .. MAX_FIELDS .. ' bytes')
    arguments.need(#ARGV <= MAX_IDS + 1, 'at most ' .. MAX_IDS .. ' ids')
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    if ARGV[1] ~= '' and ARGV[1] ~= SLICE then
        mark_complete(root, ARGV[1])
        return { replies.OK, 0 }
    end
    local is_over = ARGV[1] == SLICE and time_limit.start()
    for i = 2, #ARGV do
        if i > 2 and is_over and is_over() then return { replies.OK, i - 2 } end
        local ctx, missing = instances.open(root, ARGV[i], 0)
        if ctx then data_indexes.add_instance(ctx) end
        if not ctx and missing[1] == replies.FAULT then return missing end
    end
    return { replies.OK, #ARGV - 1 }
end
