-- needs: chart, chart_writes, commit, data_indexes, failures, jobs, keys, partition_log, sends, timers
-- Taking an instance out of the partition: its hash, history, places, timers, jobs, and whatever it invoked.
local deletion = {}

local call = redis.call

local function unindex(ctx)
    local states, root = ctx.program.states, ctx.program.root
    for _, leaf in ipairs(ctx.chart and ctx.was.leaves or { ctx.state }) do
        redis.pcall('ZREM', states[leaf].index_key, ctx.id)
    end
    data_indexes.remove_instance(ctx)
    if ctx.raw._timers then
        timers.read_list(ctx)
        for id in pairs(ctx.timers_before) do pcall(timers.unschedule, root, ctx.id, id) end
    end
    for job in string.gmatch(ctx.raw._jobs or '', '%S+') do jobs.remove(root, job, 'withdrawn') end
end

-- What its end means to others: children stop, a parent that waits learns that nothing more will come.
local function farewell(ctx, told)
    if not ctx.chart then return end
    local parent = sends.parent(ctx)
    if parent and not told and not ctx.raw._done then
        sends.mail(ctx, 'lost', parent, { invoke = parent.invoke })
    end
    chart.dismiss(ctx)
    if ctx.mail[1] then chart_writes.post(ctx, {}) end
end

-- `told`: whoever invoked it knows already. Throws, with nothing changed, where the first write cannot be made.
function deletion.remove(ctx, actor, reason, told)
    local root = ctx.program.root
    if ctx.chart then call('XLEN', keys.outbox(root)) end
    partition_log.append(root, 'kind', 'deleted', 'name', 'deleted', 'data', 'null',
        'machine', ctx.program.machine, 'instance', ctx.id, 'version', ctx.version, 'actor', actor, 'reason', reason)
    farewell(ctx, told)
    unindex(ctx)
    failures.remove_instance(root, ctx.id)
    call('DEL', keys.instance(root, ctx.id), keys.history(root, ctx.id), keys.held(root, ctx.id))
    redis.pcall('HINCRBY', keys.meta(root), 'instances', -1)
    commit.pulse(root)
end

return deletion
