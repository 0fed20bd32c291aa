-- needs: arguments, due_jobs, due_times, jobs, keys
-- The slow full check: each job is in the one place that its hash names. Every move is one call, so nothing here happens by
-- itself; keys that were deleted, edited or half restored from outside are put right.
local job_repair = {}

local ID, QUEUE, MAX_QUEUE = '^%d+%-%d+$', '^[%a_][%w_.-]*$', 64
local FIELDS = { 'queue', 'place', 'token', 'priority', 'due', 'finished', 'lease', 'deadline', 'taken', 'attempt' }
local GRACE_MS = 10000 -- a worker that lives renews its lease within this, and keeps the job
local MAX_WHY = 5

job_repair.KINDS = { 'ready', 'leased', 'delayed', 'dead', 'strays', 'ghosts', 'words' }

-- What was mended of each kind, and what could not be; `rings`: queue -> jobs that became ready.
function job_repair.tally()
    local tally = { why = {}, rings = {}, known = {} }
    for _, kind in ipairs(job_repair.KINDS) do tally[kind] = 0 end
    return tally
end

local function count(tally, kind)
    tally[kind] = tally[kind] + 1
end

local function whole(text)
    return arguments.whole(text or '')
end

-- Those words of a job that say where it belongs; nil for what is no job.
local function read(root, job)
    if not string.find(job, ID) then return nil end
    local found = redis.pcall('HMGET', keys.job(root, job), unpack(FIELDS))
    if found.err or not found[1] or #found[1] > MAX_QUEUE or not string.find(found[1], QUEUE) then return nil end
    local row = {}
    for i, name in ipairs(FIELDS) do row[name] = found[i] or nil end
    row.held = (row.token or '') ~= ''
    return row
end

-- When the lease of a job ends that nothing else is known of. It begins anew for a moment where it should be over: whoever
-- still runs the job renews it, and from the others it is taken back like any lease that ran out.
local function lease_end(row, now)
    if not row.held then return now end
    local lease = whole(row.lease) or jobs.DEFAULT.lease
    local till = math.max((whole(row.taken) or 0) + lease, now + math.min(lease, GRACE_MS))
    return math.min(till, whole(row.deadline) or till)
end

local scores = {
    ready = function(job, row) return jobs.rank(job, row.priority) end,
    leased = function(_, row, now) return lease_end(row, now) end,
    delayed = function(_, row, now) return whole(row.due) or now end,
    dead = function(_, row, now) return whole(row.finished) or now end,
}

-- A place that is none follows from the rest of the hash.
local function name_place(root, job, row, tally)
    if jobs.places[row.place or ''] then return end
    row.place = row.finished and 'dead' or row.held and 'leased' or 'ready'
    redis.call('HSET', keys.job(root, job), 'place', row.place)
    count(tally, 'words')
end

local function list(root, job, row, now, tally)
    local place, queue = row.place, row.queue
    local key = jobs.places[place](root, queue)
    if redis.call('ZSCORE', key, job) then return end
    local score = scores[place](job, row, now)
    redis.call('ZADD', key, score, job)
    count(tally, place)
    if place == 'ready' then tally.rings[queue] = (tally.rings[queue] or 0) + 1 end
    if place == 'leased' or place == 'delayed' then due_times.note(root, score, now) end
end

-- Only who holds a leased job has a token for it; and a leased job counts its attempts.
local function settle(root, job, row, tally)
    local leased, key = row.place == 'leased', keys.job(root, job)
    if row.held and not leased then
        redis.call('HSET', key, 'token', '')
        count(tally, 'words')
    elseif leased and not whole(row.attempt) then
        redis.call('HSET', key, 'attempt', 0)
        count(tally, 'words')
    end
end

-- Sweeps and pages see only those queues that the partition lists.
local function list_queue(root, queue, tally)
    if tally.known[queue] then return end
    tally.known[queue] = true
    if redis.call('SADD', keys.queues(root), queue) == 1 then count(tally, 'words') end
end

local function seat(root, job, row, now, tally)
    name_place(root, job, row, tally)
    list(root, job, row, now, tally)
    settle(root, job, row, tally)
    list_queue(root, row.queue, tally)
    if row.place == 'dead' then jobs.blame(root, job) end
end

-- What is wrong with one job keeps no other waiting.
local function attempt(tally, ...)
    local ok, caught = pcall(...)
    if ok then return true end
    local why = due_jobs.words(caught)
    if #tally.why < MAX_WHY and not tally.why[why] then
        tally.why[#tally.why + 1], tally.why[why] = why, true
    end
    return false
end

-- A job where its hash says it is; what is no job is left alone.
function job_repair.job(root, job, now, tally)
    local row = read(root, job)
    if row then attempt(tally, seat, root, job, row, now, tally) end
end

-- A member of a place: one that belongs elsewhere is put there before it leaves this one; one without a job leaves.
local function check(root, queue, place, job, now, tally)
    local row = read(root, job)
    if row and row.queue == queue and row.place == place then return end
    if row then
        if not attempt(tally, seat, root, job, row, now, tally) then return end
        if row.queue == queue and row.place == place then return end -- its hash named none
    end
    redis.call('ZREM', jobs.places[place](root, queue), job)
    count(tally, row and 'strays' or 'ghosts')
    if place == 'leased' then jobs.relieve(root, queue) end
end

-- About `many` members of a place from `cursor` on; answers where to go on, '0' at the end.
function job_repair.members(root, queue, place, cursor, many, now, tally)
    local page = redis.pcall('ZSCAN', jobs.places[place](root, queue), cursor, 'COUNT', many)
    if page.err then
        attempt(tally, error, page, 0)
        return '0'
    end
    for i = 1, #page[2], 2 do
        attempt(tally, check, root, queue, place, page[2][i], now, tally)
    end
    return page[1]
end

function job_repair.total(tally)
    local total = 0
    for _, kind in ipairs(job_repair.KINDS) do total = total + tally[kind] end
    return total
end

return job_repair
