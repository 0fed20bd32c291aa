-- needs: arguments, instance_records, jobs, json, keys, replies, time_limit
-- sb_export: reads instances or jobs whole, each as one JSON record that sb_import takes; or the counters of the partition.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 instances | jobs | counters · 2 an id, then further ones (at most 500)
-- Returns: {OK, record, ...} in order, '' for one that is gone, or for a job that is part of its instance's record. A reply of
--          more than 4 MiB, or after some ms, ends early: it answers for the first ones only · {FULL, messages} more than
--          2,000 messages of the partition are not delivered yet · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(size of the records)
local MAX_IDS, MAX_BYTES = 500, 4194304

-- The number of instances is not exported: it follows from the instances.
local function is_version_counter(name)
    return string.find(name, '^%d+:') and not string.find(name, ':instances$')
end

local function read_hash(key, is_wanted)
    local flat, parts = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do
        if not is_wanted or is_wanted(flat[i]) then
            parts[#parts + 1] = json.quote(flat[i]) .. ':' .. json.quote(flat[i + 1])
        end
    end
    return '{' .. table.concat(parts, ',') .. '}'
end

local function read_counters(root)
    local queues = {}
    for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do
        queues[#queues + 1] = json.quote(queue) .. ':' .. read_hash(keys.stats(root, queue))
    end
    return '{"kind":"counters","flow":' .. read_hash(keys.flow(root)) .. ',"refused":' .. read_hash(keys.refused(root))
        .. ',"versions":' .. read_hash(keys.versions(root), is_version_counter)
        .. ',"queues":{' .. table.concat(queues, ',') .. '}}'
end

local function read_job(root, job)
    local record, held = instance_records.make_job(root, job, jobs.places)
    if not record or instance_records.holds_job(root, job, held) then return '' end
    return '{"kind":"job","job":' .. cjson.encode(record) .. '}'
end

return function(KEYS, ARGV)
    local root, what = KEYS[1], ARGV[1]
    local is_known = what == 'instances' or what == 'jobs' or what == 'counters'
    arguments.need(is_known, 'an export is of instances, jobs or counters')
    arguments.need(#ARGV <= MAX_IDS + 1, 'at most ' .. MAX_IDS .. ' ids')
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    if what == 'counters' then return { replies.OK, read_counters(root) } end
    arguments.need(ARGV[2], 'the id is missing')
    local outbox = what == 'instances' and instance_records.read_outbox(root) or {}
    if what == 'instances' and redis.call('XLEN', keys.outbox(root)) > 2000 then
        return { replies.FULL, redis.call('XLEN', keys.outbox(root)) }
    end
    local reply, bytes, is_over = { replies.OK }, 0, time_limit.start()
    for i = 2, #ARGV do
        local text
        if what == 'jobs' then text = read_job(root, ARGV[i]) else
            text = instance_records.make(root, ARGV[i], outbox, jobs.places) or ''
        end
        reply[i], bytes = text, bytes + #text
        if bytes > MAX_BYTES or is_over() then break end
    end
    return reply
end
