-- needs: arguments, keys, replies, streams
-- sb_trim: lets go of old entries of the partition's log, but for those that a consumer group still needs.
-- KEYS:    1 root of the partition
-- ARGV:    1 ms: entries from before go · 2 how many at most (1 to 10000)
-- Returns: {OK, entries that went} · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(entries that go)
local MAX_ENTRIES = 10000

return function(KEYS, ARGV)
    local root, limit = KEYS[1], arguments.parse_count(ARGV[2], 1, MAX_ENTRIES)
    local before = arguments.need(arguments.parse_count(ARGV[1], 0, 1e14), 'a time is a whole number of ms')
    arguments.need(limit, 'a limit is a whole number from 1 to ' .. MAX_ENTRIES)
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    return { replies.OK, streams.trim_before(keys.log(root), string.format('%.0f-0', before), limit) }
end
