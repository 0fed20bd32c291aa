-- needs: arguments, keys, pulse, replies, version_counters
-- sb_version_count: counts, one by one, the instances that are older than the counters of versions. Instances that come, go
--          or move meanwhile are counted by that; each counts once, however often it is named.
-- KEYS:    1 root of the partition
-- ARGV:    1 count | finish | force · 2 an id, then further ones (at most 1000), for count
-- Returns: {OK, how many were new, '1' when the counters are exact} · {NOMACHINE} · {BADARG, why}
--          finish ends the counting when as many were counted as there are instances; force ends it in any case
-- Notifies: <root>:pulse when the counters are exact
-- Cost:    O(ids)
local MAX_IDS = 1000

return function(KEYS, ARGV)
    local root, action = KEYS[1], ARGV[1]
    arguments.refuse(arguments.check_root(root))
    arguments.need(action == 'count' or action == 'finish' or action == 'force', 'count, finish or force')
    arguments.need(#ARGV <= MAX_IDS + 1, 'at most ' .. MAX_IDS .. ' ids')
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    if not version_counters.begin_count(root) then return { replies.OK, 0, '1' } end
    local fresh = 0
    for i = 2, #ARGV do
        if version_counters.count_instance(root, ARGV[i]) then fresh = fresh + 1 end
    end
    local exact = action ~= 'count' and version_counters.finish_count(root, action == 'force')
    if exact then pulse.ring(root) end
    return { replies.OK, fresh, exact and '1' or '0' }
end
