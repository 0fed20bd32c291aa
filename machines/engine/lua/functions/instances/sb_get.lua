-- needs: arguments, instances, replies
-- sb_get: reads one instance.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 id
-- Returns: {OK, '', '0', instance JSON} · {NOINSTANCE} · {MOVED, root} or {MOVING}, as all functions that take the id of an
--          instance, while the machine's number of partitions grows: ask that root, or again at once · {NOMACHINE} · {BADARG,
--          why}
-- Notifies: nothing
-- Cost:    O(fields of the instance)
return function(KEYS, ARGV)
    arguments.need(ARGV[1], 'the id is missing')
    local raw = instances.read(KEYS[1], ARGV[1])
    if not raw then return instances.build_missing(KEYS[1], ARGV[1]) end
    return { replies.OK, '', '0', cjson.encode(raw) }
end
