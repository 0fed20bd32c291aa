-- needs: arguments, due_times, group_admissions, jobs, json, keys, packed_jobs, replies
-- sb_extend: renews leases that a worker still holds, none beyond the deadline of its job. A length that is not the job's own
-- is noted in its hash (extended).
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 lease in ms · then job, token, job, token, ... · last, 'homes' from a caller that has
--          jobs counted by the homes of queues and groups
-- Returns: {OK, word, ...} for each pair in order: '1' still held · 'gone' · 'withdrawn' · 'taken back' · {BADARG, why}
--          · with 'homes', then for jobs that homes count: queue, home, group, number of the pair, ...
-- Notifies: nothing
-- Cost:    O(pairs * log(queue))

local FIELDS = { 'deadline', 'lease', 'extended', 'group' }

-- Leases of one queue are written together.
local function add_renewal(renewed, root, queue, lease_end, job)
    local key = keys.leased(root, queue)
    local list = renewed[key] or {}
    renewed[key], list[#list + 1], list[#list + 2] = list, lease_end, job
end

return function(KEYS, ARGV)
    local root, lease = KEYS[1], arguments.parse_count(ARGV[2], 1, arguments.MAX_MS)
    arguments.need(lease, 'a lease has 1 to ' .. arguments.MAX_MS .. ' ms')
    arguments.need(#ARGV <= 4003, 'at most 2000 leases are renewed at a time')
    local now, reply, renewed, lengths = arguments.need_now(ARGV[1]), { replies.OK }, {}, {}
    local asks, known, counted = #ARGV % 2 == 1 and ARGV[#ARGV] == 'homes', {}, {}
    for i = 3, #ARGV - 1, 2 do
        local job = ARGV[i]
        local row, lost = jobs.read_held(root, job, ARGV[i + 1], unpack(FIELDS))
        if row then
            local lease_end = math.min(now + lease, tonumber(row.deadline or now + lease))
            add_renewal(renewed, root, row.queue, lease_end, job)
            due_times.note(root, lease_end, now)
            local homes = asks and group_admissions.find_homes(root, row.queue, row.group or '', known) or {}
            for h = 1, #homes, 2 do
                local at = #counted
                counted[at + 1], counted[at + 2], counted[at + 3] = row.queue, homes[h], homes[h + 1]
                counted[at + 4] = (i - 1) / 2
            end
            if jobs.get_lease(row) ~= lease then lengths[#lengths + 1] = keys.job(root, job) end
        end
        reply[#reply + 1] = lost or '1'
    end
    for key in pairs(renewed) do redis.call('ZCARD', key) end -- throws before the first write
    for key, list in pairs(renewed) do redis.call('ZADD', key, unpack(list)) end
    for _, key in ipairs(lengths) do
        packed_jobs.spread(key)
        redis.call('HSET', key, 'extended', json.number(lease))
    end
    due_times.ring_bell(root)
    for _, word in ipairs(counted) do reply[#reply + 1] = word end
    return reply
end
