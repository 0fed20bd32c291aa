-- needs: history_entries, json, keys, packed_jobs, strings, timers
-- Makes the record of an instance: everything that Redis holds about it, as one JSON text. Equal instances have equal
-- records, so a record that is made twice tells whether the instance has changed in between.
local instance_records = {}

local JOB = '^%d+%-%d+$'
local MAX_MESSAGES = 2000 -- of an outbox; a longer one is delivered first

local function encode_list(items)
    return items[1] and cjson.encode(items) or '[]'
end

-- Lists a hash as names and values in turn, sorted by name.
local function sort_pairs(flat)
    local names, held, found = {}, {}, {}
    for i = 1, #flat, 2 do names[#names + 1], held[flat[i]] = flat[i], flat[i + 1] end
    strings.sort(names)
    for i, name in ipairs(names) do found[2 * i - 1], found[2 * i] = name, held[name] end
    return found, held
end

-- Reads the messages of an outbox by the instance that sent them: id -> {kind, machine, id, body, ...}, four texts for each.
-- nil when there are too many to read in one call.
function instance_records.read_outbox(root)
    local found, key = {}, keys.outbox(root)
    if redis.call('XLEN', key) > MAX_MESSAGES then return nil end
    for _, message in ipairs(redis.call('XRANGE', key, '-', '+', 'COUNT', MAX_MESSAGES)) do
        local row = {}
        for i = 1, #message[2], 2 do row[message[2][i]] = message[2][i + 1] end
        local ok, body = pcall(cjson.decode, row.body or '')
        local sender = ok and type(body) == 'table' and type(body.from) == 'table' and body.from.id
        if type(sender) == 'string' then
            local list = found[sender] or {}
            found[sender] = list
            for _, word in ipairs({ row.kind or '', row.machine or '', row.id or '', row.body }) do list[#list + 1] = word end
        end
    end
    return found
end

-- Lists the jobs that belong to an instance: those it waits for, and its dead ones, by their numbers.
local function list_jobs(held, wrong)
    local listed, numbers = {}, {}
    local function add(job)
        if numbers[job] or not string.find(job, JOB) then return end
        listed[#listed + 1], numbers[job] = job, tonumber(string.match(job, '%d+$'))
    end
    for job in string.gmatch(held._jobs or '', '%S+') do add(job) end
    local ok, causes = pcall(cjson.decode, wrong or '{}')
    for cause in pairs(ok and type(causes) == 'table' and causes or {}) do add(tostring(cause)) end
    table.sort(listed, function(a, b) return numbers[a] < numbers[b] end)
    return listed
end

-- Makes the record of a job: {id, score in its place, field, value, ...}; nil for a job that is gone.
function instance_records.make_job(root, job, places)
    local sorted, held = sort_pairs(packed_jobs.list_fields(packed_jobs.read_all(keys.job(root, job))))
    local place = places[held.place or '']
    if not held.queue or not place then return nil end
    return { job, redis.call('ZSCORE', place(root, held.queue), job) or '0', unpack(sorted) }, held
end

-- Tells whether the record of its instance holds the job.
function instance_records.holds_job(root, job, held)
    if not held.instance then return false end
    local row = redis.call('HMGET', keys.instance(root, held.instance), '_def', '_jobs')
    if not row[1] then return false end
    for _, other in ipairs(list_jobs({ _jobs = row[2] or nil }, redis.call('HGET', keys.wrong(root), held.instance) or nil)) do
        if other == job then return true end
    end
    return false
end

local function encode_jobs(root, id, held, wrong, places)
    local found, is_leased = {}, false
    for _, job in ipairs(list_jobs(held, wrong)) do
        local record, row = instance_records.make_job(root, job, places)
        if record and row.instance == id then
            found[#found + 1], is_leased = record, is_leased or row.place == 'leased'
        end
    end
    return encode_list(found), is_leased
end

-- Lists the ids of the jobs in the record of an instance.
function instance_records.list_held_jobs(root, id)
    local awaited, found = redis.call('HGET', keys.instance(root, id), '_jobs'), {}
    for _, job in ipairs(list_jobs({ _jobs = awaited or nil }, redis.call('HGET', keys.wrong(root), id) or nil)) do
        local row = packed_jobs.read(keys.job(root, job), 'instance')
        if row and row.instance == id then found[#found + 1] = job end
    end
    return found
end

local function read_entered(root, id, text)
    local found = {}
    for state in string.gmatch(text or '', '[^\n]+') do
        found[#found + 1], found[#found + 2] = state, redis.call('ZSCORE', keys.state(root, state), id) or '0'
    end
    return found
end

-- Lists the timers whose step failed, and when they are tried again.
local function read_late(root, id, text)
    local ok, list = pcall(cjson.decode, text or '[]')
    local found = {}
    for _, timer in ipairs(ok and list or {}) do
        local member = timers.make_member(timer[1], id)
        local score = redis.call('ZSCORE', keys.late(root), member)
        if score then found[#found + 1], found[#found + 2] = member, score end
    end
    return found
end

-- Makes the record of an instance; nil when there is none. `outbox`: as read_outbox answers it; `places`: jobs.places. The
-- second result tells why the instance should not move now: 'leased' while a worker has one of its jobs, 'messages' while
-- messages that it sent are not delivered.
function instance_records.make(root, id, outbox, places)
    local flat = redis.call('HGETALL', keys.instance(root, id))
    if #flat == 0 then return nil end
    local sorted, held = sort_pairs(flat)
    local wrong, messages = redis.call('HGET', keys.wrong(root), id), outbox[id] or {}
    local listed, is_leased = encode_jobs(root, id, held, wrong or nil, places)
    local text = '{"kind":"instance","id":' .. json.quote(id)
        .. ',"hash":' .. encode_list(sorted)
        .. ',"entered":' .. encode_list(read_entered(root, id, held._state))
        .. ',"history":' .. encode_list(history_entries.unpack_all(root, held._created,
            redis.call('LRANGE', keys.history(root, id), 0, -1)))
        .. ',"held":' .. encode_list(redis.call('LRANGE', keys.held(root, id), 0, -1))
        .. ',"late":' .. encode_list(read_late(root, id, held._timers))
        .. ',"wrong":' .. (wrong and json.quote(wrong) or 'null')
        .. ',"jobs":' .. listed
        .. ',"messages":' .. encode_list(messages) .. '}'
    return text, is_leased and 'leased' or messages[1] and 'messages' or nil
end

return instance_records
