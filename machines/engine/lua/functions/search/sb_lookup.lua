-- needs: arguments, data_indexes, failures, filters, json, keys, replies
-- sb_lookup: reads a page of the instances that an index leads to, in the order of its values; pages stay stable while
-- others change.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 condition (JSON {field, eq} or {field, prefix} or {field, any of ge, gt, le, lt}) · 2 limit · 3 after position
--          ('' = from the beginning) · 4 '1' for descending · 5 filter (JSON {states, where}, or '') · 6 how many to check
--          (at least as many as the limit, at most 2000) · 7 '1' for how many were, at the end
-- Returns: {OK, position of the last one checked, '', id, position, {field, value, ...}, id, position, {...}, ...}; the
--          first is '' when there are no more. A position is hexadecimal and sorts like the values, also across partitions.
--          Texts are indexed by their first 64 bytes: the caller compares the data itself · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log(instances with the field) + those checked); a page ends early after 4 MiB or some ms
local MAX_LIMIT, MAX_LOOK = 1001, 2000

return function(KEYS, ARGV)
    local root, limit = KEYS[1], arguments.parse_count(ARGV[2], 1, MAX_LIMIT)
    arguments.need(limit, 'limit is a whole number from 1 to ' .. MAX_LIMIT)
    local conditions = data_indexes.parse_conditions('[' .. (ARGV[1] or '') .. ']')
    local position = arguments.need(data_indexes.from_hex(ARGV[3] or ''), 'a position is hexadecimal')
    local filter, look = filters.parse(ARGV[5]), arguments.parse_count(ARGV[6], limit, MAX_LOOK) or limit
    arguments.need(#conditions == 1, 'one condition is needed')
    local from, to = data_indexes.make_range(conditions[1])
    arguments.need(from, 'no index holds that value')
    local key, descending = keys.lookup(root, conditions[1].field), ARGV[4] == '1'
    from, to = data_indexes.narrow_range(from, to, position, descending)
    local found
    if descending then
        found = redis.call('ZREVRANGEBYLEX', key, to, from, 'LIMIT', 0, look)
    else
        found = redis.call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, look)
    end
    if #found == 0 and redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local several = conditions[1].field == failures.FIELD
    local chosen, hashes, last, looked = filters.select_page(filter, root, found, 1, limit, data_indexes.parse_id, several)
    local over = last == #found and #found < look
    local reply = { replies.OK, over and '' or data_indexes.to_hex(found[last]), '' }
    for i, place in ipairs(chosen) do
        local at = #reply
        reply[at + 1], reply[at + 2] = data_indexes.parse_id(found[place]), data_indexes.to_hex(found[place])
        reply[at + 3] = hashes[i]
    end
    if ARGV[7] == '1' then reply[#reply + 1] = looked end
    return reply
end
