-- needs: arguments, dead_jobs, due_jobs, due_times, group_admissions, group_limits, jobs, keys, packed_jobs, ready_order
-- Checks that each job is in the one place that its hash names, and repairs keys that were deleted, edited or half restored
-- from outside. The engine itself never leaves such damage, because each move of a job is one call.
local job_repair = {}

local ID, QUEUE, MAX_QUEUE = '^%d+%-%d+$', '^[%a_][%w_.-]*$', 64
local PLACE_FIELDS = { 'place', 'token', 'priority', 'due', 'finished', 'lease', 'deadline', 'taken', 'attempt',
    'group', 'weight' }
local GRACE_MS = 10000 -- a live worker renews its lease within this and keeps the job
local MAX_WHY = 5

job_repair.KINDS = { 'ready', 'leased', 'delayed', 'dead', 'strays', 'ghosts', 'words' }

-- Starts the counts of repairs by kind, and of errors; `rings`: queue -> jobs that became ready.
function job_repair.new_tally()
    local tally = { why = {}, rings = {}, known = {} }
    for _, kind in ipairs(job_repair.KINDS) do tally[kind] = 0 end
    return tally
end

local function count(tally, kind)
    tally[kind] = tally[kind] + 1
end

local function parse_whole(text)
    return arguments.parse_whole(text or '')
end

-- Reads the fields of a job that say where it belongs; nil for anything that is no job.
local function read(root, job)
    if not string.find(job, ID) then return nil end
    local row = packed_jobs.read(keys.job(root, job), unpack(PLACE_FIELDS))
    if not row or #row.queue > MAX_QUEUE or not string.find(row.queue, QUEUE) then return nil end
    row.held = (row.token or '') ~= ''
    return row
end

-- Computes the end of a lease of which only the job's hash is left. A lease that should have ended gets a short time: a
-- worker that still runs the job renews it, otherwise it expires like any other.
local function compute_lease_end(row, now)
    if not row.held then return now end
    local lease = parse_whole(row.lease) or jobs.DEFAULT.lease
    local till = math.max((parse_whole(row.taken) or 0) + lease, now + math.min(lease, GRACE_MS))
    return math.min(till, parse_whole(row.deadline) or till)
end

local scores = {
    ready = function(job, row, _, root)
        return ready_order.compute_score(root, row.queue, job, row, (parse_whole(row.attempt) or 0) > 0)
    end,
    leased = function(_, row, now) return compute_lease_end(row, now) end,
    delayed = function(_, row, now) return parse_whole(row.due) or now end,
    dead = function(_, row, now) return parse_whole(row.finished) or now end,
    handled = function(_, row, now) return parse_whole(row.finished) or now end,
}

-- Derives a missing or invalid place from the other fields.
local function repair_place(root, job, row, tally)
    if jobs.places[row.place or ''] then return end
    row.place = row.finished and 'dead' or row.held and 'leased' or 'ready'
    redis.call('HSET', keys.job(root, job), 'place', row.place)
    count(tally, 'words')
end

local function repair_membership(root, job, row, now, tally)
    local place, queue = row.place, row.queue
    local key = jobs.places[place](root, queue)
    if redis.call('ZSCORE', key, job) then return end
    local score = scores[place](job, row, now, root)
    redis.call('ZADD', key, score, job)
    count(tally, place == 'handled' and 'dead' or place)
    if place == 'ready' then tally.rings[queue] = (tally.rings[queue] or 0) + 1 end
    if place == 'leased' or place == 'delayed' then due_times.note(root, score, now) end
end

-- Only a leased job has a token, and a leased job has an attempt.
local function repair_token(root, job, row, tally)
    local leased, key = row.place == 'leased', keys.job(root, job)
    if row.held and not leased then
        packed_jobs.spread(key)
        redis.call('HSET', key, 'token', '')
        count(tally, 'words')
    elseif leased and not parse_whole(row.attempt) then
        redis.call('HSET', key, 'attempt', 0)
        count(tally, 'words')
    end
end

-- Sweeps and pages read only the queues that the partition lists.
local function repair_queue_list(root, queue, tally)
    if tally.known[queue] then return end
    tally.known[queue] = true
    if redis.call('SADD', keys.queues(root), queue) == 1 then count(tally, 'words') end
end

local function repair(root, job, row, now, tally)
    repair_place(root, job, row, tally)
    if row.place ~= 'ready' and row.place ~= 'leased' then packed_jobs.spread(keys.job(root, job)) end
    repair_membership(root, job, row, now, tally)
    repair_token(root, job, row, tally)
    repair_queue_list(root, row.queue, tally)
    if row.place == 'dead' and not dead_jobs.judge(root, job, now) then jobs.note_failure(root, job) end
end

-- An error with one job does not stop the others.
local function try(tally, ...)
    local ok, caught = pcall(...)
    if ok then return true end
    local why = due_jobs.describe_error(caught)
    if #tally.why < MAX_WHY and not tally.why[why] then
        tally.why[#tally.why + 1], tally.why[why] = why, true
    end
    return false
end

-- Puts a job where its hash says it is; ignores anything that is no job.
function job_repair.repair_job(root, job, now, tally)
    local row = read(root, job)
    if row then try(tally, repair, root, job, row, now, tally) end
end

-- Checks a member of the jobs of groups with limits, whose counts must not hold a place for a job that has left.
local function check_group_member(root, queue, member, now, tally)
    local _, letter, job = group_limits.parse_member(member)
    if letter == 'w' or letter == 'l' and string.find(job, ' ', 1, true) then
        return group_admissions.drop_unneeded(root, queue, member, now)
    end
    local row = job and read(root, job)
    if row then row.score = tonumber(redis.call('ZSCORE', keys.ready(root, queue), job) or 0) end
    if row and row.queue == queue and group_limits.is_member(member, row) then return end
    group_limits.remove_member(root, queue, member)
    count(tally, row and 'strays' or 'ghosts')
end

-- Adds the member of a job of a group with limits that is where it belongs.
local function repair_group(root, queue, job, row, tally)
    row.score = tonumber(redis.call('ZSCORE', keys.ready(root, queue), job) or 0)
    if group_limits.add_member(root, queue, job, row) then count(tally, 'words') end
end

-- Checks a member of a place: a job that belongs elsewhere is added there before it is removed here; a member without a job
-- is removed.
local function check_member(root, queue, place, job, now, tally)
    local row = read(root, job)
    if row and row.queue == queue and row.place == place then return repair_group(root, queue, job, row, tally) end
    if row then
        if not try(tally, repair, root, job, row, now, tally) then return end
        if row.queue == queue and row.place == place then return end -- the hash had no place
    end
    redis.call('ZREM', jobs.places[place](root, queue), job)
    count(tally, row and 'strays' or 'ghosts')
    if place == 'leased' then jobs.ring_requested_bell(root, queue) end
end

-- Checks about `many` members of a place from `cursor` on; answers the next cursor, '0' at the end.
function job_repair.repair_members(root, queue, place, cursor, many, now, tally)
    local is_places = place ~= 'members'
    local key = (is_places and jobs.places[place] or keys.members)(root, queue)
    local page = redis.pcall('ZSCAN', key, cursor, 'COUNT', many)
    if page.err then
        try(tally, error, page, 0)
        return '0'
    end
    for i = 1, #page[2], 2 do
        if is_places then
            try(tally, check_member, root, queue, place, page[2][i], now, tally)
        else
            try(tally, check_group_member, root, queue, page[2][i], now, tally)
        end
    end
    return page[1]
end

function job_repair.count_repairs(tally)
    local total = 0
    for _, kind in ipairs(job_repair.KINDS) do total = total + tally[kind] end
    return total
end

return job_repair
