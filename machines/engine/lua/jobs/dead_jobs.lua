-- needs: failures, instances, jobs, keys, replies
-- Tells dead jobs that an instance still waits for from handled ones: the instance has left the state that requested the
-- job, has finished, or is gone. The field `_dead` of an instance names the dead jobs that it waits for, so that a step
-- that leaves a state finds them without a further read.
local dead_jobs = {}

local MAX_SETTLED = 200 -- jobs of one sweep: some 10 ms at most
local SETTLED = 'settled'

local function parse_number(job)
    return tonumber(string.match(job, '(%d+)$')) or 0
end

-- Tells whether the instance already has a later job of the same invoke.
local function has_later_job(ctx, job, row)
    for other in string.gmatch((ctx.raw._jobs or '') .. ' ' .. (ctx.raw._dead or ''), '%S+') do
        if parse_number(other) > parse_number(job) and jobs.read_invoke(ctx.program.root, other) == row.invoke then
            return true
        end
    end
    return false
end

-- Tells whether the state that requested the job has been active ever since.
local function is_in_state(ctx, job, row)
    local state, created = ctx.program.invoked_by[row.invoke], tonumber(row.created) or 0
    if not state or created < (tonumber(ctx.raw._created) or 0) then return false end
    if not ctx.chart then return ctx.state == state and created >= (tonumber(ctx.raw._entered) or 0) end
    return ctx.active[state] and not has_later_job(ctx, job, row)
end

-- Tells whether a dead job waits for a person. A job that no invoke requested always does; one whose instance cannot be read
-- does, too.
function dead_jobs.is_awaited(root, job, row, now)
    if (row.invoke or '') == '' then return true end
    if row.handled then return false end
    local ctx, missing = instances.open(root, row.instance, now)
    if not ctx then return missing[1] ~= replies.NO_INSTANCE end
    return not ctx.raw._done and is_in_state(ctx, job, row) or false
end

-- Notes in the instance that it waits for the dead job.
function dead_jobs.note(root, job, row)
    if (row.invoke or '') == '' then return end
    local key = keys.instance(root, row.instance)
    local text = redis.pcall('HGET', key, '_dead')
    if type(text) ~= 'string' then text = '' end
    if redis.pcall('EXISTS', key) ~= 1 or string.find(' ' .. text .. ' ', ' ' .. job .. ' ', 1, true) then return end
    redis.pcall('HSET', key, '_dead', text == '' and job or text .. ' ' .. job)
end

-- Moves a dead job to the handled ones unless its instance waits for it. Tells whether it moved.
function dead_jobs.judge(root, job, now)
    local row = jobs.read(root, job)
    if not row or row.place ~= 'dead' or (row.invoke or '') == '' then return false end
    local text = redis.pcall('HGET', keys.instance(root, row.instance), '_dead')
    if type(text) == 'string' and string.find(' ' .. text .. ' ', ' ' .. job .. ' ', 1, true) then return false end
    if dead_jobs.is_awaited(root, job, row, now) then
        dead_jobs.note(root, job, row)
        return false
    end
    jobs.make_handled(root, job, row, now)
    return true
end

-- Judges again the dead jobs that `text` names: the instance may be elsewhere now. Never throws.
function dead_jobs.judge_again(root, id, text, now)
    redis.pcall('HDEL', keys.instance(root, id), '_dead')
    for job in string.gmatch(text, '%S+') do pcall(dead_jobs.judge, root, job, now) end
end

-- Makes the jobs that `text` names dead ones again, as before their instance moved on, and has it wait for them. Never throws.
function dead_jobs.await_again(root, id, text)
    redis.pcall('HSET', keys.instance(root, id), '_dead', text)
    for job in string.gmatch(text, '%S+') do
        local row = jobs.read(root, job)
        if row and row.place == 'handled' then pcall(jobs.take_back_handled, root, job, row) end
    end
end

-- Judges dead jobs from `cursor` on; answers how many it looked at, how many moved, and whether the queue is finished.
local function settle_queue(root, queue, cursor, limit, now)
    local found = redis.pcall('ZRANGE', keys.dead(root, queue), cursor, cursor + limit - 1)
    if found.err then return 0, 0, true end
    local moved = 0
    for _, job in ipairs(found) do
        local ok, answer = pcall(dead_jobs.judge, root, job, now)
        if ok and answer then moved = moved + 1 end
    end
    return #found, moved, #found < limit
end

-- Judges the dead jobs of a release that did not tell handled ones apart, some in each call; the partition notes where it is,
-- and at the end that it is done. Answers how many moved.
function dead_jobs.settle(root, queues, now)
    local meta = keys.meta(root)
    local at = redis.call('HGET', meta, SETTLED)
    if at == '1' or not redis.call('HGET', meta, 'current') then return 0 end
    local cursor, last = string.match(at or '', '^(%d+) (.+)$')
    cursor, last = tonumber(cursor or 0), last or ''
    table.sort(queues)
    local left, moved = MAX_SETTLED, 0
    for _, queue in ipairs(queues) do
        if queue >= last then
            if queue ~= last then cursor = 0 end
            local looked, gone, over = settle_queue(root, queue, cursor, left, now)
            left, moved = left - looked, moved + gone
            if not over then
                redis.call('HSET', meta, SETTLED, (cursor + looked - gone) .. ' ' .. queue)
                return moved
            end
            if left <= 0 then left = 1 end
        end
    end
    redis.call('HSET', meta, SETTLED, '1')
    return moved
end

return dead_jobs
