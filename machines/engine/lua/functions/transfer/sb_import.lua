-- needs: arguments, keys, pulse, record_checks, record_writes, redirects, replies, time_limit, values
-- sb_import: writes records that sb_export made, each once: an instance with its history, timers, jobs and messages; a job
-- without an instance; the counters of a partition. A record is checked against the definition before anything is written.
-- KEYS:    1 root of the partition
-- ARGV:    1 id of the transfer: letters and digits, under which jobs and counters are written once · 2 now (ms, or '')
--          · 3 a record, then further ones (at most 500)
-- Returns: {OK, outcome, why, outcome, why, ...}; an outcome is written, there (the same instance with the same or a later
--          revision, or a job or counters of this transfer), other (another instance has the id) or refused (the record is
--          damaged, or does not fit the definition). A slow call answers for the first ones only · {NOMACHINE} · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(size of the records)
local MAX_RECORDS, MAX_BYTES = 500, 33554432
local KEEP_MS = 2592000000 -- thirty days in which a transfer is not written twice
local NAME, COUNTER = '^[%a_][%w_.-]*$', '^[%a]+:?%d*$'
local VERSION_COUNTER = '^%d+:[cdrf]%a+$' -- created, dead, refused, failed


local function import_instance(root, record, now)
    local found = record_checks.check_instance(root, record)
    local here = redis.call('HMGET', keys.instance(root, found.ctx.id), '_created', '_version')
    if here[1] then
        local same = tonumber(here[1]) == tonumber(found.raw._created) and tonumber(here[2]) >= found.ctx.revision
        return same and 'there' or 'other', 'revision ' .. here[2] .. ' of an instance created at ' .. here[1] .. ' ms is here'
    end
    if redirects.build(root, found.ctx.id) then return 'refused', 'its machine grows, and this is not its partition' end
    record_writes.write_instance(root, found, now)
    return 'written', ''
end

local function import_job(root, record, now, marks)
    local job = record_checks.check_job(record.job)
    local known = redis.call('HGET', marks, job.id)
    if known then return 'there', 'it is job ' .. known end
    local id = record_writes.add_job(root, job, now)
    redis.call('HSET', marks, job.id, id)
    redis.call('PEXPIRE', marks, KEEP_MS)
    return 'written', ''
end

-- Collects the counters of a hash as {key, field, number}.
local function collect(writes, key, counts, most, pattern)
    if type(counts) ~= 'table' then values.fail('counters are an object') end
    for name, number in pairs(counts) do
        local count = type(number) == 'string' and arguments.parse_whole(number)
        local fits = type(name) == 'string' and #name <= most and not string.find(name, '%c') and string.find(name, pattern)
        if not count or not fits then
            values.fail('a counter is a name and a whole number, not ' .. string.sub(tostring(name), 1, 60))
        end
        writes[#writes + 1] = { key, name, number }
    end
end

local function import_counters(root, record, marks)
    local mark, writes = 'counters:' .. tostring(record.partition or ''), {}
    if redis.call('HGET', marks, mark) then return 'there', 'these counters were added before' end
    collect(writes, keys.flow(root), record.flow, 200, '^%d+:.')
    collect(writes, keys.refused(root), record.refused, 400, '')
    collect(writes, keys.versions(root), record.versions or {}, 40, VERSION_COUNTER)
    if type(record.queues) ~= 'table' then values.fail('counters are an object') end
    for queue, counts in pairs(record.queues) do
        if type(queue) ~= 'string' or #queue > 64 or not string.find(queue, NAME) then values.fail('a queue has a name') end
        collect(writes, keys.stats(root, queue), counts, 40, COUNTER)
    end
    for _, write in ipairs(writes) do redis.call('HLEN', write[1]) end
    for _, write in ipairs(writes) do redis.call('HINCRBY', unpack(write)) end
    redis.call('HSET', marks, mark, 1)
    redis.call('PEXPIRE', marks, KEEP_MS)
    return 'written', ''
end

local function import(root, text, now, marks)
    if #text > MAX_BYTES then return 'refused', 'a record has at most ' .. MAX_BYTES .. ' bytes' end
    local ok, record = pcall(cjson.decode, text)
    if not ok then return 'refused', 'a record is JSON' end
    if type(record) ~= 'table' then return 'refused', 'a record is an object' end
    if record.kind == 'instance' then return import_instance(root, record, now) end
    if record.kind == 'job' then return import_job(root, record, now, marks) end
    if record.kind == 'counters' then return import_counters(root, record, marks) end
    return 'refused', 'records are of instances, jobs and counters'
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    arguments.refuse(arguments.check_root(root))
    arguments.need(string.find(ARGV[1] or '', '^%w+$') and #ARGV[1] <= 64, 'a transfer has an id of letters and digits')
    arguments.need(ARGV[3] and #ARGV <= MAX_RECORDS + 2, 'an import has 1 to ' .. MAX_RECORDS .. ' records')
    local now = arguments.need_now(ARGV[2])
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local marks = keys.imported(root, ARGV[1])
    redis.call('HLEN', marks)
    local is_over, reply = time_limit.start(), { replies.OK }
    for i = 3, #ARGV do
        if i > 3 and is_over() then break end
        local ok, outcome, why = pcall(import, root, ARGV[i], now, marks)
        if not ok then
            why = type(outcome) == 'table' and outcome.err or values.describe_error(outcome)
            outcome = 'refused'
        end
        reply[#reply + 1], reply[#reply + 2] = outcome, why
    end
    pulse.ring(root)
    return reply
end
