-- needs: chart, chart_writes, commit, data_indexes, failures, jobs, keys, partition_log, pulse, sends, timers, version_counters
-- Deletes an instance: its hash, history, index entries, timers and jobs, and the children it invoked.
local deletion = {}

local call = redis.call

local function unindex(ctx)
    local states, root = ctx.program.states, ctx.program.root
    for _, leaf in ipairs(ctx.config_before.leaves) do
        redis.pcall('ZREM', states[leaf].index_key, ctx.id)
    end
    data_indexes.remove_instance(ctx)
    if ctx.raw._timers then
        timers.read_list(ctx)
        for id in pairs(ctx.timers_before) do pcall(timers.unschedule, root, ctx.id, id) end
    end
    for job in string.gmatch(ctx.raw._jobs or '', '%S+') do jobs.remove(root, job, 'withdrawn') end
end

-- Tells others of the end: children stop, and a parent that waits learns that no done data will come.
local function notify_others(ctx, parent_knows)
    local parent = sends.read_parent(ctx)
    if parent and not parent_knows and not ctx.raw._done then
        sends.add_message(ctx, 'lost', parent, { invoke = parent.invoke })
    end
    chart.stop_children(ctx)
    if ctx.messages[1] then chart_writes.post_messages(ctx, {}) end
end

-- Removes the instance and what belongs to it, without a log entry and without a pulse: the caller counts it.
function deletion.remove(ctx, parent_knows)
    local root = ctx.program.root
    notify_others(ctx, parent_knows)
    unindex(ctx)
    jobs.handle_all(root, ctx.id, failures.list_causes(root, ctx.id), ctx.now)
    failures.remove_instance(root, ctx.id)
    call('DEL', keys.instance(root, ctx.id), keys.history(root, ctx.id), keys.held(root, ctx.id),
        keys.undo(root, ctx.id))
end

-- `parent_knows`: the parent asked for the end. The effects of exit actions outlive the instance. Throws before any change when
-- the first writes are not possible.
function deletion.delete(ctx, actor, reason, parent_knows)
    local root = ctx.program.root
    if ctx.chart then call('XLEN', keys.outbox(root)) end -- as each instance is that has a parent or children
    if ctx.effects[1] then
        call('XLEN', keys.log(root))
        commit.carry_out_effects(ctx)
    end
    partition_log.append(root, 'kind', 'deleted', 'name', 'deleted', 'data', 'null',
        'machine', ctx.program.machine, 'instance', ctx.id, 'version', ctx.revision or 0, 'actor', actor, 'reason', reason)
    deletion.remove(ctx, parent_knows)
    redis.pcall('HINCRBY', keys.meta(root), 'instances', -1)
    version_counters.remove(root, ctx.program.version)
    pulse.ring(root)
end

return deletion
