-- needs: arguments, data_indexes, failures, json, keys, replies
-- sb_weigh: estimates how many instances each condition of a search leaves, where an index can tell; the search walks the
-- index of the smallest.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 conditions (JSON array, as for sb_lookup) · 2 entered at or before (ms, or '') · 3.. states
-- Returns: {OK, the indexed fields (<field>:1, or <field>:0 while some instances are missing, separated by spaces),
--          instances in these states, instances for each condition, ...}; -1 without an index · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O((conditions + states) * log(instances))
local function estimate(root, listed, condition)
    local known = condition.field == failures.FIELD or string.find(' ' .. listed, ' ' .. condition.field .. ':', 1, true)
    if not known then return -1 end
    local from, to = data_indexes.make_range(condition)
    return from and redis.call('ZLEXCOUNT', keys.lookup(root, condition.field), from, to) or -1
end

return function(KEYS, ARGV)
    local root, conditions = KEYS[1], data_indexes.parse_conditions(ARGV[1])
    local last = ARGV[2] and ARGV[2] ~= '' and ARGV[2] or '+inf'
    arguments.need(arguments.is_score(ARGV[2] or ''), 'a score is a number of ms')
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local listed, standing = data_indexes.read_list(root), 0
    for i = 3, #ARGV do standing = standing + redis.call('ZCOUNT', keys.state(root, ARGV[i]), '-inf', last) end
    local reply = { replies.OK, listed, standing }
    for i, condition in ipairs(conditions) do reply[i + 3] = estimate(root, listed, condition) end
    return reply
end
