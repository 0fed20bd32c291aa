-- needs: data_indexes, failures, jobs, keys, pulse, queue_counters, timers, version_counters
-- Removes an instance from the partition that it leaves, without a word to others: it goes on elsewhere.
local departures = {}

local call = redis.call

local function remove_job(root, job)
    local row = jobs.read(root, job)
    if not row then return end
    jobs.delete(root, job, row)
    queue_counters.increment(root, row.queue, 'moved')
    if row.place == 'leased' then jobs.note_withdrawn(root, job, row) end
end

-- `job_ids`: the jobs in the record of the instance.
function departures.remove(ctx, job_ids)
    local root, id = ctx.program.root, ctx.id
    for state in string.gmatch(ctx.raw._state, '[^\n]+') do redis.pcall('ZREM', keys.state(root, state), id) end
    data_indexes.remove_instance(ctx)
    timers.read_list(ctx)
    for timer in pairs(ctx.timers_before) do pcall(timers.unschedule, root, id, timer) end
    for _, job in ipairs(job_ids) do remove_job(root, job) end
    failures.remove_instance(root, id)
    call('DEL', keys.instance(root, id), keys.history(root, id), keys.held(root, id), keys.undo(root, id))
    redis.pcall('HINCRBY', keys.meta(root), 'instances', -1)
    version_counters.remove(root, ctx.program.version)
    pulse.ring(root)
end

return departures
