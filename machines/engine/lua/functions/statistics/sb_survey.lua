-- needs: arguments, json, keys, live_figures, queue_figures, replies
-- sb_survey: reads the figures of many partitions that one server holds; those that did not change since the caller read
--          them cost one small read each.
-- flags:   no-writes, allow-cross-slot-keys
-- KEYS:    1 root of a partition on that server
-- ARGV:    pairs of 1 root, 2 stamp that the caller has of it ('' for none); 1 to 500 pairs
-- Returns: {OK, now (ms), an item for each pair} · {BADARG, why}
--          item: '' when the stamp is still the same · JSON {stamp, live, queues} with the figures of sb_live and sb_stats
--          · '-' where no machine is published · '!' and the error of the server. A stamp is the ms of the partition's
--          latest pulse: a change up to 50 ms after it leaves it as it is, so a reading counts only if its now is later.
-- Notifies: nothing
-- Cost:    O(1) for an unchanged partition, else as sb_live and sb_stats; at most 5000 late instances are looked at
local MAX_PAIRS = 500

local function read(root, stamp, now, budget)
    local meta = redis.call('HMGET', keys.meta(root), 'current', 'touched')
    if not meta[1] then return '-' end
    if stamp ~= '' and meta[2] == stamp then return '' end
    local live, queues = live_figures.read(root, meta[1], now, budget), queue_figures.read(root)
    return json.encode({ stamp = meta[2] or '', live = live, queues = queues })
end

return function(_, ARGV)
    local is_pairs = #ARGV > 0 and #ARGV % 2 == 0 and #ARGV <= 2 * MAX_PAIRS
    arguments.need(is_pairs, 'give 1 to ' .. MAX_PAIRS .. ' pairs of root and stamp')
    local now, budget = arguments.read_now(''), live_figures.make_budget()
    local found = { replies.OK, string.format('%d', now) }
    for i = 1, #ARGV, 2 do
        local ok, item = pcall(read, ARGV[i], ARGV[i + 1], now, budget)
        found[#found + 1] = ok and item or '!' .. tostring(type(item) == 'table' and (item.err or item.sb) or item)
    end
    return found
end
