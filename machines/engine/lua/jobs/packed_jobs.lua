-- needs: json
-- The hash of a plain job, whose fields are few: it was never taken or for the first time, and differs from the defaults in
-- nothing but its input. What it is stands in one field, and its lease in the token. Any other job has a field for each.
local packed_jobs = {}

local match, sub = string.match, string.sub

-- The last letter of the token of a plain job. Any other ends with a '-'.
packed_jobs.PLAIN = '+'

-- The kind of a plain job: its src, queue and invoke, which are those of many. Behind it when it was created, and its instance.
-- Of a job that no instance waits for these are empty.
local KIND, MADE = '^(%S+ %S+ %S* )%d+ ', '^(%d+) (.*)$'
local JOB = '^(%S+) (%S+) (%S*) (%d+) (.*)$'
-- The token, and when and by whom the job was taken. Jobs that were taken before this was so have a field for each.
local LEASE = '^(%S+) (%S+) (.*)$'

-- The leases of plain jobs that were taken last, by token: the end of such a job reads its token alone. Lost when the server
-- restarts: the end then reads the job.
local MAX_REMEMBERED = 2000 -- jobs before those of the leases before are forgotten
local leases, leases_before, remembered_count = {}, {}, 0

-- Answers the field `plain` of a new job; nil for one that needs fields of its own.
function packed_jobs.pack(spec, non_defaults, now)
    local instance, invoke = spec.instance or '', spec.instance and spec.invoke or ''
    local fits = not non_defaults[1] or instance == '' and non_defaults[1] == 'input' and not non_defaults[3]
    if not fits or (instance == '') ~= (invoke == '') then return nil end
    return spec.src .. ' ' .. spec.queue .. ' ' .. invoke .. ' ' .. json.number(now) .. ' ' .. instance
end

-- Answers the kind of a plain job as text; nil for what is none.
function packed_jobs.find_kind(plain)
    return match(plain, KIND)
end

-- Answers when a plain job of this kind was created, and its instance ('' for none); nil for a job of another kind.
function packed_jobs.parse_made(plain, kind)
    if sub(plain, 1, #kind) == kind then return match(plain, MADE, #kind + 1) end
    return nil
end

-- Answers how the lease of a plain job is stored in its token.
function packed_jobs.pack_lease(token, taken, worker)
    return token .. ' ' .. taken .. ' ' .. worker
end

-- Remembers `count` jobs that are leased with the token of plain ones. `lease`: `root`; `packed`, the token as it is stored;
-- `row`, what plain jobs of one kind have in common; `made`, by job when each was created, and `instances`. What changes one of
-- these of a leased job spreads it.
function packed_jobs.remember(lease, count)
    if remembered_count >= MAX_REMEMBERED then leases_before, leases, remembered_count = leases, {}, 0 end
    leases[lease.row.token], remembered_count = lease, remembered_count + count
end

-- Finds the lease of a token; nil where it is not remembered.
function packed_jobs.find(root, token)
    local lease = leases[token] or leases_before[token]
    return lease and lease.root == root and lease or nil
end

-- Unpacks a row of which `plain` or `token` are packed. Answers the row.
function packed_jobs.unpack(row)
    if row.plain then
        local invoke, instance
        row.src, row.queue, invoke, row.created, instance = match(row.plain, JOB)
        if instance and instance ~= '' then row.invoke, row.instance = invoke, instance end
        row.plain = nil
    end
    local token, taken, worker = match(row.token or '', LEASE)
    if token then row.token, row.attempt, row.taken, row.worker = token, '1', taken, worker end
    return row
end

-- Reads fields of a job as a row; nil for anything that is no job. The token is among them where parts of the lease are.
function packed_jobs.read(key, ...)
    local found = redis.pcall('HMGET', key, 'queue', 'plain', ...)
    if found.err or not (found[1] or found[2]) then return nil end
    local row = { queue = found[1] or nil, plain = found[2] or nil }
    for i, name in ipairs({ ... }) do row[name] = found[i + 2] or nil end
    packed_jobs.unpack(row)
    return row.queue and row or nil
end

-- Reads all fields of a job as a row; nil for anything that is no job.
function packed_jobs.parse(flat)
    if flat.err or #flat == 0 then return nil end
    local row = { place = nil, src = nil, queue = nil, created = nil, instance = nil, invoke = nil } -- preallocates the table
    for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
    packed_jobs.unpack(row)
    return row.queue and row or nil
end

-- Lists the fields and values of a job that is packed.
function packed_jobs.unpack_fields(flat)
    local row, unpacked = packed_jobs.parse(flat), {}
    for name, value in pairs(row or {}) do unpacked[#unpacked + 1], unpacked[#unpacked + 2] = name, value end
    return unpacked
end

-- Stores each part of a job in a field of its own, before one of them changes.
function packed_jobs.spread(key)
    local found = redis.pcall('HMGET', key, 'plain', 'token')
    if found.err then return end
    local row, flat = packed_jobs.unpack({ plain = found[1] or nil, token = found[2] or nil }), {}
    if not (row.queue or found[2] and row.token ~= found[2]) then return end
    for name, value in pairs(row) do flat[#flat + 1], flat[#flat + 2] = name, value end
    redis.call('HSET', key, unpack(flat))
    if row.queue then redis.call('HDEL', key, 'plain') end
end

return packed_jobs
