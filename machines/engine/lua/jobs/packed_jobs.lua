-- needs: json
-- How jobs are stored. A plain job is a string: what it is, and while it is leased its lease before that. So a call reads,
-- leases and deletes all plain jobs that it is about in one command each. A plain job was never taken, or is leased for the
-- first time, and differs from the defaults in nothing but a short input. Any other job is a hash with a field for each part.
local packed_jobs = {}

local call, pcall_redis, unpack = redis.call, redis.pcall, unpack
local char, find, match, sub = string.char, string.find, string.match, string.sub

-- The last letter of the token of a plain job. Any other ends with a '-'.
packed_jobs.PLAIN = '+'

local MAX_INPUT = 1000 -- bytes of the input of a plain job: its lease writes it again
-- src, queue, invoke, when it was created, and its instance; of a job that no instance waits for the invoke is empty, and the
-- input stands in place of the instance. The last letter is one of many: Lua looks a long text up by a few of its letters, the
-- last among them, and these would be the same in most jobs.
local JOB, KIND, MADE = '^(%S+) (%S+) (%S*) (%d+) (.*).$', '^%S+ %S+ %S* ', '^(%d+) (.*).$'
local FIRST_LETTER, LETTERS = 33, 94
-- A space, the token, when the job was taken, and the length of the worker's name, which stands before the job.
local LEASE = '^ (%S+) (%S+) (%d+) ()'
local OLD_JOB = '^(%S+) (%S+) (%S*) (%d+) (.*)$'
-- Until they were strings, plain jobs were hashes with the fields `plain` and, once they were leased, `token`.
local PACKED_TOKEN = '^(%S+) (%S+) (.*)$'

-- Counts what changed stored plain jobs: what a call has read before is outdated then.
packed_jobs.changes = 0

function packed_jobs.note_change()
    packed_jobs.changes = packed_jobs.changes + 1
end

-- Answers the text of a new job; nil for one that is stored as a hash.
function packed_jobs.pack(spec, non_defaults, now, number)
    local instance, invoke, name, input = spec.instance or '', spec.instance and spec.invoke or '', unpack(non_defaults, 1, 2)
    local fits = not name or instance == '' and name == 'input' and #input <= MAX_INPUT and not non_defaults[3]
    if not fits or (instance == '') ~= (invoke == '') then return nil end
    return spec.src .. ' ' .. spec.queue .. ' ' .. invoke .. ' ' .. json.number(now) .. ' ' .. (input or instance)
        .. char(FIRST_LETTER + number % LETTERS)
end

-- Answers what stands before the text of a plain job while it is leased.
function packed_jobs.make_lease(token, taken, worker)
    return ' ' .. token .. ' ' .. taken .. ' ' .. #worker .. ' ' .. worker
end

-- Answers the text of a plain job without its lease; while it is leased also the token, when it was taken, and by whom.
function packed_jobs.split(text)
    local token, taken, length, at = match(text, LEASE)
    if not token then return text end
    local last = at + length - 1
    return sub(text, last + 1), token, taken, sub(text, at, last)
end

-- Reads a plain job as a row; nil for any other text.
local function parse_text(text)
    local plain, token, taken, worker = packed_jobs.split(text)
    local src, queue, invoke, created, rest = match(plain, JOB)
    if not src then return nil end
    local row = { place = token and 'leased' or 'ready', src = src, queue = queue, created = created, invoke = nil,
        instance = nil, input = nil, token = token, attempt = token and '1', taken = taken, worker = worker }
    if invoke ~= '' then
        row.invoke, row.instance = invoke, rest
    elseif rest ~= '' then
        row.input = rest
    end
    return row
end

-- Finds the kind of a plain job: `text`, with which the texts of all jobs begin that are of this kind and lease, and `row`,
-- whose created, and instance or input, are those of this job. Nil for any other text.
function packed_jobs.find_kind(text)
    local row = parse_text(text)
    if not row then return nil end
    local _, last = find(text, KIND, #text - #packed_jobs.split(text) + 1)
    return { text = sub(text, 1, last), row = row }
end

-- Answers when a plain job of this kind was created, and its instance or input ('' for none); nil for any other job.
function packed_jobs.parse_made(text, kind)
    local length = #kind
    if sub(text, 1, length) == kind then return match(text, MADE, length + 1) end
    return nil
end

-- Reads the texts of plain jobs by their keys, in order; false for any other job, and for none.
function packed_jobs.read_texts(names)
    local texts = pcall_redis('MGET', unpack(names))
    if not texts.err then return texts end
    for i, key in ipairs(names) do -- a user without MGET
        local text = pcall_redis('GET', key)
        texts[i] = type(text) == 'string' and text
    end
    return texts
end

-- Writes texts of plain jobs. `flat`: key, text, key, text, ...
function packed_jobs.write_texts(flat)
    if not pcall_redis('MSET', unpack(flat)).err then return end
    for i = 1, #flat, 2 do call('SET', flat[i], flat[i + 1]) end -- a user without MSET
end

-- Unpacks a row. Answers it, nil when it is no job, and whether it was packed.
local function unpack_row(row)
    local is_packed = row.plain ~= nil
    if is_packed then
        local invoke, instance
        row.src, row.queue, invoke, row.created, instance = match(row.plain, OLD_JOB)
        if instance and instance ~= '' then row.invoke, row.instance = invoke, instance end
        row.plain = nil
    end
    local token, taken, worker = match(row.token or '', PACKED_TOKEN)
    if token then row.token, row.attempt, row.taken, row.worker = token, '1', taken, worker end
    return row.queue and row or nil, row.queue and is_packed
end

-- Reads fields of a job that is a hash as a row; nil for anything that is no job. The token is among them where parts of the
-- lease are.
function packed_jobs.read_hash(key, ...)
    local found = pcall_redis('HMGET', key, 'queue', 'plain', ...)
    if found.err or not (found[1] or found[2]) then return nil end
    local row = { queue = found[1] or nil, plain = found[2] or nil }
    for i, name in ipairs({ ... }) do row[name] = found[i + 2] or nil end
    return unpack_row(row)
end

-- Reads fields of a job as a row, of a plain one all; nil for anything that is no job.
function packed_jobs.read(key, ...)
    local text = packed_jobs.read_texts({ key })[1]
    if text then return parse_text(text) end
    return packed_jobs.read_hash(key, ...)
end

-- Reads what HGETALL answered for a job as a row; nil for anything that is no job. Answers also whether it was packed.
function packed_jobs.parse(flat)
    if flat.err or #flat == 0 then return nil end
    local row = { place = nil, src = nil, queue = nil, created = nil, instance = nil, invoke = nil } -- preallocates the table
    for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
    return unpack_row(row)
end

-- Reads all fields of a job as a row; nil for anything that is no job.
function packed_jobs.read_all(key)
    local text = packed_jobs.read_texts({ key })[1]
    if text then return parse_text(text) end
    return packed_jobs.parse(pcall_redis('HGETALL', key))
end

-- Lists the fields of a row and their values in turn.
function packed_jobs.list_fields(row)
    local flat = {}
    for name, value in pairs(row or {}) do flat[#flat + 1], flat[#flat + 2] = name, value end
    return flat
end

-- Reads what spreading a job writes; nil for one that has nothing packed. A former plain job is cleared of what was packed.
local function unpack_stored(key)
    local text = packed_jobs.read_texts({ key })[1]
    if text then
        local row = parse_text(text)
        if row then call('DEL', key) end
        return row
    end
    local found = pcall_redis('HMGET', key, 'plain', 'token')
    if found.err or not (found[1] or match(found[2] or '', PACKED_TOKEN)) then return nil end
    local row = { plain = found[1] or nil, token = found[2] or nil }
    if unpack_row(row) then call('HDEL', key, 'plain') end
    return row
end

-- Stores a plain job as a hash, before a part of it changes.
function packed_jobs.spread(key)
    local row = unpack_stored(key)
    if not row then return end
    call('HSET', key, unpack(packed_jobs.list_fields(row)))
    packed_jobs.note_change()
end

return packed_jobs
