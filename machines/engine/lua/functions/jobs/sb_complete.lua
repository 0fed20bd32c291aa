-- needs: arguments, batches, completion, job_batches, jobs, json, keys, packed_jobs, payloads, pulse
-- needs: queue_counters, replies, time_limit, traces, values
-- sb_complete: completes jobs and moves their instances by done.invoke.<id>, each pair at once, if the token still holds the
-- job.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 'short' for replies without the instance, 'slice' for such for as many jobs as some ms allow,
--          '', or, likewise, 'traced' and for each job the trace context of its step (W3C traceparent, '-' for none), between
--          spaces, 'runs' as 'slice' · 3 and on: job, token, result (JSON, or ''), job, token, result, ... (at most 1000
--          jobs); with 'runs' one text for jobs without results, a line for each token, which stands before its jobs
-- Returns: {OK, reply, ...} in order, for each job or the first ones: send the others again. A reply:
--          {OK, transition ids, '0', instance JSON or ''} the instance moved ('1' when it sent messages, and the states before
--          when it is traced) · {OK} no instance waited for it · with 'short' and 'slice', in place of these two and where no
--          messages were sent, the transition ids as text, '' for none; with 'runs', a number behind each reply
--          counts the jobs in a row that it is for · {LOST, 'gone' | 'withdrawn' | 'taken back'} ·
--          {REFUSED, explanation JSON} the step failed, the job is still leased · {BADPAYLOAD, why, ''} · {FAULT, why} ·
--          {BADARG, why} before any job was tried
-- Notifies: <root>:pulse
-- Cost:    as sb_fire, plus O(log(queue)), for each job
local MAX_JOBS, LOOK, SLICES = 1000, 16, 2 -- jobs between two looks at the clock; time of a call
local NO_RESULT, NO_KIND = {}, { text = '\n', row = {} } -- never written; no text of a job begins so
local FIELDS = { 'token', 'instance', 'invoke', 'created', 'attempt', 'taken', 'worker', 'unique', 'group', 'batch', 'started' }
local OK = replies.OK
local pcall, gmatch, parse_made = pcall, string.gmatch, packed_jobs.parse_made
local end_invoke, add_ended_job = completion.end_invoke, batches.add_ended_job

-- Reads what a completion needs of job number `i` of the call if the token holds it; nil and why when it does not. A step
-- before may have changed what was read of the plain jobs.
local function read_held(root, i, job, token, call)
    if call.ended and call.ended[job] then return nil, 'gone' end
    local key, kind, text = call.names[i], call.kind, call.texts[i]
    if packed_jobs.changes ~= call.changes then text = packed_jobs.read_texts({ key })[1] end
    if not text then return jobs.check_held(root, job, token, packed_jobs.read_hash(key, unpack(FIELDS))) end
    local created, rest = parse_made(text, kind.text)
    if not created then
        kind = packed_jobs.find_kind(text) or NO_KIND
        call.kind = kind
        created, rest = kind.row.created, kind.row.instance
    end
    local row = kind.row
    if row.token ~= token then return jobs.check_held(root, job, token, row.src and row) end
    row.created, row.instance = created, row.invoke and rest
    return row
end

-- Deletes a job that ran for `ms`.
local function delete_job(root, job, row, ms)
    jobs.delete(root, job, row)
    queue_counters.count_run_times(root, row.queue, { [queue_counters.find_bucket(ms)] = 1 })
end

local function complete_job(root, i, job, token, text, call)
    local row, lost = read_held(root, i, job, token, call)
    if not row then return { replies.LOST, lost } end
    row.key = call.names[i]
    local payload = NO_RESULT
    if text ~= '' then
        local result, why = payloads.parse_result(text)
        if why then return { replies.BAD_PAYLOAD, why, '' } end
        payload = { result = result }
    end
    local reply = end_invoke(root, job, row, 'done.invoke.', payload, call)
    if reply[1] ~= OK then return reply end
    if row.taken ~= call.taken then -- mostly that of the job before: they were taken together
        call.taken, call.ms = row.taken, call.now - (row.taken or call.now)
    end
    if call.batch then
        add_ended_job(call.batch, job, row, call.ms)
    else
        delete_job(root, job, row, call.ms)
    end
    if row.batch then
        local done = call.done[row.batch] or {}
        call.done[row.batch], done[#done + 1] = done, job
    end
    return reply
end

-- Lists the words behind 'traced'; nil where nothing is traced.
local function read_traces(text)
    if string.sub(text or '', 1, 7) ~= 'traced ' then return nil end
    local found = {}
    for word in string.gmatch(string.sub(text, 8), '%S+') do found[#found + 1] = word end
    return found
end

-- Lists the jobs of a text that has a line for each token, and the token of each job; both are empty for any other text.
local function read_runs(text)
    local found, tokens, count = {}, {}, 0
    for token, listed in gmatch(text or '', '(%S+) ([^\n]+)') do
        for job in gmatch(listed, '%S+') do
            count = count + 1
            found[count], tokens[count] = job, token
        end
    end
    return found, tokens
end

-- Lists the replies without those that are equal to the one before, each with the number of jobs that it stands for.
local function count_runs(reply)
    local runs, size = { OK }, 1
    for i = 2, #reply do
        if i > 2 and reply[i] == runs[size - 1] then
            runs[size] = runs[size] + 1
        else
            runs[size + 1], runs[size + 2] = reply[i], 1
            size = size + 2
        end
    end
    return runs
end

-- Makes the reply for a job whose completion threw an error, which has changed nothing and concerns only this job.
local function make_fault(caught)
    return { replies.FAULT, type(caught) == 'table' and caught.err or values.describe_error(caught) }
end

return function(KEYS, ARGV)
    local root, count, listed, tokens = KEYS[1], (#ARGV - 2) / 3, nil, nil
    if ARGV[2] == 'runs' then
        listed, tokens = read_runs(#ARGV == 3 and ARGV[3])
        count = #listed
    end
    if count < 1 or count > MAX_JOBS or count % 1 ~= 0 then
        arguments.refuse('each job comes with its token and its result, 1 to ' .. MAX_JOBS .. ' of them')
    end
    local now, clock = arguments.need_now(ARGV[1])
    local short = listed or ARGV[2] == 'short' or ARGV[2] == 'slice'
    local batch = count > 1 and batches.open(root, json.number(now), short) or nil
    local prefix, names = keys.job(root, ''), {}
    for i = 1, count do names[i] = prefix .. (listed and listed[i] or ARGV[i * 3]) end
    local call = { now = now, clock = clock, batch = batch, short = short, ended = batch and batch.ended, names = names,
        texts = packed_jobs.read_texts(names), changes = packed_jobs.changes, kind = NO_KIND, taken = nil, ms = 0, done = {} }
    local reply, ended, traced = { replies.OK }, false, read_traces(ARGV[2])
    local is_over = (traced or listed or ARGV[2] == 'slice') and time_limit.start(SLICES)
    for i = 1, count do
        local job, token, result
        if listed then
            job, token, result = listed[i], tokens[i], ''
        else
            job, token, result = ARGV[i * 3], ARGV[i * 3 + 1], ARGV[i * 3 + 2]
        end
        if traced then
            traces.begin(traced[i])
            call.traced = traces.current
        end
        local is_done, one = pcall(complete_job, root, i, job, token, result, call)
        if not is_done then one = make_fault(one) end
        if one[1] == OK then
            ended = true
            if short and not one[5] then one = one[2] or '' end
        end
        reply[i + 1] = one
        if is_over and i % LOOK == 0 and is_over() then break end
    end
    if batch then batches.close(batch) end
    for id, done in pairs(call.done) do job_batches.count(root, id, 'open', 'done', done, now) end
    if ended then pulse.ring(root, clock) end
    return listed and count_runs(reply) or reply
end
