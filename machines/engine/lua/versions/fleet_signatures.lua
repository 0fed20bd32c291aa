-- needs: json, keys, packed_jobs, programs
-- Reads the few fields of an instance that decide what a plan does with it, and makes its signature: instances of one
-- signature have the same version, configuration and pending work.
local fleet_signatures = {}

local pcall_redis, concat, sort, gmatch = redis.pcall, table.concat, table.sort, string.gmatch

local JOB = '^%d+%-%d+$'
local EVENT = 3 -- place of the event in a timer

-- Adds the place of a job to `found`, invoke -> place; jobs that no invoke asked for belong to nobody.
local function add_job(root, job, found)
    local row = packed_jobs.read(keys.job(root, job), 'invoke', 'place')
    if row and (row.invoke or '') ~= '' then found[row.invoke] = row.place or 'gone' end
end

-- Reads invoke -> place of the open jobs, and of the dead ones that `wrong` names.
local function read_jobs(root, open, wrong)
    local found = {}
    local ok, causes = pcall(cjson.decode, wrong or '{}')
    for cause in pairs(ok and type(causes) == 'table' and causes or {}) do
        if string.find(cause, JOB) then add_job(root, cause, found) end
    end
    for job in gmatch(open or '', '%S+') do add_job(root, job, found) end
    return next(found) and found or nil
end

local function count_timers(text)
    local ok, list = pcall(cjson.decode, text)
    local found = {}
    for _, timer in ipairs(ok and type(list) == 'table' and list or {}) do
        local event = tostring(timer[EVENT])
        found[event] = (found[event] or 0) + 1
    end
    return next(found) and found or nil
end

local function list_children(text)
    local ok, children = pcall(cjson.decode, text)
    local found = {}
    for invoke in pairs(ok and type(children) == 'table' and children or {}) do found[#found + 1] = invoke end
    sort(found)
    return found[1] and json.list(found) or nil
end

-- Writes a table of texts and numbers so that equal tables have equal texts.
local function write_sorted(found)
    local listed = {}
    for name, value in pairs(found) do listed[#listed + 1] = name .. '\2' .. value end
    sort(listed)
    return concat(listed, '\3')
end

local function read_histories(root, id, compiled)
    if not compiled or not compiled.histories[1] then return '' end
    local row = pcall_redis('HMGET', keys.instance(root, id), unpack(compiled.histories))
    if row.err then return '' end
    for i = 1, #row do row[i] = row[i] or '' end
    return '\1h' .. concat(row, '\2')
end

-- Reads what few instances have; answers the rest of the signature and the pending work, nil where there is none.
local function read_pending(root, id, row, wrong)
    local text, pending = '', {}
    pending.jobs = (row[3] and row[3] ~= '' or wrong) and read_jobs(root, row[3], wrong) or nil
    pending.timers = row[4] and count_timers(row[4])
    pending.children = row[5] and list_children(row[5])
    pending.suspended, pending.done = row[6] and true, row[7] and true
    if row[6] and redis.call('LLEN', keys.held(root, id)) > 0 then pending.held = true end
    if pending.jobs then text = text .. '\1j' .. write_sorted(pending.jobs) end
    if pending.timers then text = text .. '\1t' .. write_sorted(pending.timers) end
    if pending.children then text = text .. '\1c' .. concat(pending.children, '\2') end
    text = text .. (pending.suspended and '\1s' or '') .. (pending.done and '\1d' or '') .. (pending.held and '\1w' or '')
    if row[8] then text = text .. '\1p' .. row[8] end
    if row[9] then text = text .. '\1a' end
    return text, pending
end

-- Reads an instance. Answers its signature, definition, configuration text and pending work (nil: none); nil when there is no
-- such instance, and nil and why when its key was not written by the engine. `has_failures`: whether the partition has
-- failures at all.
function fleet_signatures.read(root, id, has_failures)
    local row = pcall_redis('HMGET', keys.instance(root, id), '_def', '_state', '_jobs', '_timers', '_children',
        '_suspended', '_done', '_pin', '_parent')
    if row.err then return nil, row.err end
    local def, state = row[1], row[2]
    if not def or not state then
        if redis.call('EXISTS', keys.instance(root, id)) == 0 then return nil end
        return nil, 'its key was not written by the engine'
    end
    local wrong = has_failures and redis.call('HGET', keys.wrong(root), id) or nil
    local signature, pending = def .. '\1' .. state, nil
    if wrong or row[3] and row[3] ~= '' or row[4] or row[5] or row[6] or row[7] or row[8] or row[9] then
        local text
        text, pending = read_pending(root, id, row, wrong)
        signature = signature .. text
    end
    local ok, compiled = pcall(programs.load, root, def)
    return signature .. read_histories(root, id, ok and compiled or nil), def, state, pending
end

return fleet_signatures
