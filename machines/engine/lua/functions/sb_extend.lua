-- needs: arguments, jobs, keys, replies
-- sb_extend: renews leases a worker still holds.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 lease in ms · then job, token, job, token, ...
-- Returns: {OK, '1' or '0', ...} for each pair in order: still held, or not · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(pairs * log(queue))
return function(KEYS, ARGV)
    local root, lease = KEYS[1], arguments.count(ARGV[2], 1, arguments.MAX_MS)
    local bad = arguments.misfit('', '', '', '', ARGV[1] or '')
    if not lease then bad = 'a lease has 1 to ' .. arguments.MAX_MS .. ' ms' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local till, reply = arguments.now(ARGV[1]) + lease, { replies.OK }
    for i = 3, #ARGV - 1, 2 do
        local row = jobs.read(root, ARGV[i])
        local held = not jobs.lost(row, ARGV[i + 1])
        if held then
            redis.call('ZADD', keys.leased(root, row.queue), till, ARGV[i])
            redis.call('HSET', keys.job(root, ARGV[i]), 'until', till)
        end
        reply[#reply + 1] = held and '1' or '0'
    end
    return reply
end
