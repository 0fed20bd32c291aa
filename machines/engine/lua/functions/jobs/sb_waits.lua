-- needs: arguments, awaited_jobs, chart, instances, json, replies
-- sb_waits: lists the jobs that an instance waits for, dead ones too, and whether its states listen for their end.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 id
-- Returns: {OK, JSON list of {invoke, state, src, queue, job, place, skip, suspended}} · {NOINSTANCE} · {NOMACHINE}
--          · {BADARG, why} · {FAULT, why}
-- Notifies: nothing
-- Cost:    O(jobs of the instance), and O(dead jobs of the queue) for each job that is no longer open
return function(KEYS, ARGV)
    arguments.need(ARGV[1], 'the id is missing')
    local ctx = instances.demand(KEYS[1], ARGV[1], (arguments.read_now('')))
    local rows = json.list()
    for i, wait in ipairs(awaited_jobs.list(ctx)) do
        rows[i] = { invoke = wait.invoke, state = wait.state, src = wait.src, queue = wait.queue, job = wait.job or '',
            place = wait.row and wait.row.place or '', skip = chart.has_transition(ctx, 'done.invoke.' .. wait.invoke),
            suspended = ctx.raw._suspended ~= nil }
    end
    return { replies.OK, json.encode(rows) }
end
