-- needs: arguments, awaited_jobs, instances, jobs, keys, packed_jobs, redirects, replies
-- sb_jobs: reads jobs of one queue in one place, first due first; or, by its id, one job; or the jobs of one instance.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 queue ('' with an id) · 2 ready | leased | delayed | dead | handled | job | instance · 3 limit (1..1000),
--          or the id of the job, or of the instance: its open jobs, then the dead ones it waits for · 4 offset ('' = 0)
-- Returns: {OK, jobs in that place, job, {field, value, ...}, {instance field, value, ...}, ...}: '_later', '1' in
--          place of the fields when the id now belongs to a later instance, '_elsewhere', '1' when it is in another partition ·
--          {MOVED, root} · {MOVING} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(log(queue) + limit); of an instance as sb_waits
local UNTIL = { leased = 'until', delayed = 'due' }

-- Reads jobs and their scores; dead and handled ones newest first.
local function read_place(root, queue, place, limit, skip)
    local key = jobs.places[place](root, queue)
    local command = jobs.has_ended(place) and 'ZREVRANGE' or 'ZRANGE'
    return redis.call(command, key, skip, skip + limit - 1, 'WITHSCORES'), redis.call('ZCARD', key)
end

local function find_job(root, job)
    local row = packed_jobs.read(keys.job(root, job), 'place')
    local place = row and jobs.places[row.place or '']
    return { job, place and redis.call('ZSCORE', place(root, row.queue), job) or '0' }, 1
end

-- Finds the jobs in the order of the instance, the dead ones last; none when there is no such instance.
local function find_jobs_of(root, id)
    local ctx, missing = instances.open(root, id, arguments.read_now(''))
    if not ctx and (missing[1] == replies.MOVED or missing[1] == replies.MOVING) then return nil, missing end
    local ids, known, found = {}, {}, {}
    local function add(job)
        if job and not known[job] then known[job], ids[#ids + 1] = true, job end
    end
    if ctx then
        for job in string.gmatch(ctx.raw._jobs or '', '%S+') do add(job) end
        for _, wait in ipairs(awaited_jobs.list(ctx)) do
            if wait.row and wait.row.place == 'dead' then add(wait.job) end
        end
    end
    for _, job in ipairs(ids) do
        local one = find_job(root, job)
        found[#found + 1], found[#found + 2] = one[1], one[2]
    end
    return found, #ids
end

-- Reads the instance of a job. A job that is older than the instance belonged to another one of the same id, whose data is
-- not the job's.
local function read_instance(root, row)
    local key = keys.instance(root, row.instance)
    local created = redis.call('HGET', key, '_created')
    if created and (tonumber(created) or 0) > (tonumber(row.created) or 0) then return { '_later', '1' } end
    if not created and redirects.build(root, row.instance) then return { '_elsewhere', '1' } end
    return redis.call('HGETALL', key)
end

return function(KEYS, ARGV)
    local root, queue, place, limit = KEYS[1], ARGV[1], ARGV[2], arguments.parse_count(ARGV[3], 1, 1000)
    local skip = arguments.parse_whole(ARGV[4] or '') or (ARGV[4] or '') == '' and 0
    local found, total
    if (place == 'job' or place == 'instance') and ARGV[3] then
        found, total = (place == 'job' and find_job or find_jobs_of)(root, ARGV[3])
    elseif jobs.places[place or ''] and limit and skip then
        found, total = read_place(root, queue, place, limit, skip)
    else
        arguments.refuse('a place is ready, leased, delayed, dead or handled, and a limit 1 to 1000')
    end
    if not found then return total end
    local reply = { replies.OK, total }
    for i = 1, #found, 2 do
        local row = jobs.read(root, found[i])
        if row then
            local flat = packed_jobs.list_fields(row)
            local at, count, until_field = #reply, #flat, UNTIL[row.place]
            if until_field then flat[count + 1], flat[count + 2] = until_field, found[i + 1] end
            reply[at + 1], reply[at + 2] = found[i], flat
            reply[at + 3] = row.instance and read_instance(root, row) or {}
        end
    end
    return reply
end
