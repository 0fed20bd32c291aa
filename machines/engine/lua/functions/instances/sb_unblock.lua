-- needs: arguments, awaited_jobs, chart, commit, completion, instances, jobs, payloads, previews, repairs, replies
-- needs: steps
-- sb_unblock: repairs the wait for a job. 'retry': the dead job of an invoke is ready again with its attempts reset, a
-- delayed one at once. 'skip': the job is removed, and the instance takes the step of its end with the given result.
-- 'cancel': the job is removed, and the instance takes the step of error.invoke.<id>, kind Withdrawn, if a transition
-- listens for it. A worker that runs the job learns of it. Each is a step in the history with actor and reason.
-- KEYS:    1 root of the partition
-- ARGV:    1 id · 2 retry | skip | cancel · 3 invoke · 4 result (JSON, or ''; for skip) · 5 expect (revision or '') · 6 actor
--          · 7 reason (required) · 8 now (ms since the epoch, or '') · 9 idempotency key or '' · 10 'dry' for a preview, or ''
--          · 11 permit (as sb_fire)
-- Returns: {OK, transition ids, replayed 0|1, instance JSON} (and '1' when it sent messages), or {OK, preview JSON}
--          · {APPROVAL, ...} as sb_fire
--          · {REFUSED, explanation JSON} · {SUSPENDED, since ms} · {CONFLICT, revision} · {NOINSTANCE} · {NOMACHINE}
--          · {BADPAYLOAD, why, ''} · {BADARG, why} · {FAULT, why}
-- Notifies: <root>:pulse, at most once in 50 ms
-- Cost:    as sb_fire, and O(dead jobs of the queue) where the job is no longer open
local FACTS = { type = 'external' }
local repairs_by_name = {}

-- Makes the dead or delayed job ready.
function repairs_by_name.retry(ctx, call, wait)
    local root, row = ctx.program.root, wait.row
    arguments.need(row, 'its job is gone: to force it into the state it is in makes a new one')
    local can_run = row.place == 'dead' or row.place == 'delayed'
    arguments.need(can_run, 'its job is ' .. row.place .. ': there is nothing to retry')
    if row.unique and row.place == 'dead' and jobs.find_holder(root, row.queue, row.unique) then
        arguments.refuse('another open job has the unique key of ' .. wait.job)
    end
    ctx.renewed = wait.job
    if call.dry ~= '' then return previews.build_reply(ctx) end
    repairs.demand_approval(ctx, 'retry', call.permit, call.actor)
    jobs.check_place(root, row.queue, 'ready') -- these throw before any write when a place has another type
    jobs.check_place(root, row.queue, row.place)
    local history_payload = payloads.encode_for_history({ invoke = wait.invoke, job = wait.job })
    local ok, fault = commit.write_step(ctx, '(retry)', call.actor, call.reason, history_payload)
    if not ok then return { replies.FAULT, fault } end
    completion.redrive(root, row.queue, row.place, wait.job, ctx.now)
    ctx.raw = instances.read(root, ctx.id)
    return repairs.store_reply(ctx, call)
end

-- Commits the step of an instance that no longer waits for the job, and removes the job.
local function finish(ctx, call, wait, event, history_payload)
    if call.dry ~= '' then return previews.build_reply(ctx) end
    if wait.row then jobs.check_place(ctx.program.root, wait.row.queue, wait.row.place) end
    local reply = repairs.finish(ctx, call, event, payloads.encode_for_history(history_payload))
    if reply[1] == replies.OK and wait.job then jobs.remove(ctx.program.root, wait.job, 'withdrawn') end
    return reply
end

function repairs_by_name.skip(ctx, call, wait, text)
    local result, why = payloads.parse_result(text)
    if why then return { replies.BAD_PAYLOAD, why, '' } end
    local event, payload = 'done.invoke.' .. wait.invoke, result ~= nil and { result = result } or {}
    arguments.need(chart.has_transition(ctx, event), 'nothing listens for ' .. event .. ': skip would have no effect')
    if wait.open then completion.remove_awaited(ctx, wait.job) end
    local taken, failure = chart.step(ctx, event, payload, FACTS)
    if not taken then
        return { replies.REFUSED, replies.explain_step(ctx, instances.reopen(ctx), event, payload, false, failure) }
    end
    return finish(ctx, call, wait, '(skip)', { invoke = wait.invoke, result = result })
end

function repairs_by_name.cancel(ctx, call, wait)
    arguments.need(wait.open, 'no job of ' .. wait.invoke .. ' is open: there is nothing to cancel')
    local event = 'error.invoke.' .. wait.invoke
    local payload = { error = 'the job was cancelled', kind = 'Withdrawn', attempts = tonumber(wait.row.attempt or 0) }
    completion.remove_awaited(ctx, wait.job)
    if chart.has_transition(ctx, event) and not chart.step(ctx, event, payload, FACTS) then
        ctx = instances.reopen(ctx) -- its actions fail on the event: the instance stays where it is and no longer waits
        completion.remove_awaited(ctx, wait.job)
    end
    return finish(ctx, call, wait, '(cancel)', { invoke = wait.invoke, job = wait.job })
end

return function(KEYS, ARGV)
    local call, verb, invoke = repairs.parse_call(ARGV, 5), ARGV[2] or '', ARGV[3] or ''
    arguments.need(ARGV[1], 'the id is missing')
    arguments.need(repairs_by_name[verb], 'the repairs are retry, skip and cancel')
    local ctx = repairs.open(KEYS[1], call)
    local wait = arguments.need(awaited_jobs.find(ctx, invoke), "it does not wait for a job of '" .. invoke .. "'")
    if ctx.raw._suspended and verb ~= 'retry' then return { replies.SUSPENDED, ctx.raw._suspended } end
    return repairs_by_name[verb](ctx, call, wait, ARGV[4] or '')
end
