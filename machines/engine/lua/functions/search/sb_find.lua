-- needs: arguments, filters, keys, keyset_pages, replies
-- sb_find: reads a page of the instances in one state, by the time they entered it; pages stay stable while others move.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 state · 2 limit · 3 after score ('' = from the beginning) · 4 after id · 5 entered at or before (ms, or '') · 6
--          '1' for newest first · 7 filter (JSON {where}, or '') · 8 how many to check (at least as many as the limit, at
--          most 2000) · 9 '1' for how many were, at the end
-- Returns: {OK, score and id of the last one checked, id, score, {field, value, ...}, id, score, {...}, ...}; the first two
--          are '' when there are no more; a score is the ms at which the instance entered the state · {NOMACHINE} · {BADARG,
--          why}
-- Notifies: nothing
-- Cost:    O(log(instances in the state) + those checked); a page ends early after 4 MiB or some ms
local MAX_LOOK = 2000
local MAX_LIMIT = 1001 -- one more than a page: it tells whether there is a next one

return function(KEYS, ARGV)
    local root, state, limit = KEYS[1], ARGV[1], arguments.parse_count(ARGV[2], 1, MAX_LIMIT)
    arguments.need(limit, 'limit is a whole number from 1 to ' .. MAX_LIMIT)
    arguments.need(arguments.is_score(ARGV[3] or '') and arguments.is_score(ARGV[5] or ''), 'a score is a number of ms')
    local cursor = { score = ARGV[3] or '', id = ARGV[4] or '' }
    local last = ARGV[5] and ARGV[5] ~= '' and ARGV[5] or '+inf'
    local page = ARGV[6] == '1' and keyset_pages.read_descending or keyset_pages.read_ascending
    local filter = filters.parse(ARGV[7])
    local look = arguments.parse_count(ARGV[8], limit, MAX_LOOK) or limit
    local found = page(keys.state(root, state), cursor, last, look)
    if #found == 0 and redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local chosen, hashes, stop, looked = filters.select_page(filter, root, found, 2, limit, tostring)
    local reply = { replies.OK, '', '' }
    if stop + 1 < #found or #found == look * 2 then reply[2], reply[3] = found[stop + 1], found[stop] end
    for i, place in ipairs(chosen) do
        local at = #reply
        reply[at + 1], reply[at + 2] = found[place], found[place + 1]
        reply[at + 3] = hashes[i]
    end
    if ARGV[9] == '1' then reply[#reply + 1] = looked end
    return reply
end
