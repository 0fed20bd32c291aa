-- needs: arguments, job_batches, job_words, jobs, keys, pulse, replies, strings
-- sb_batch: adds jobs to a batch, which it creates at first.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · 2 batch (1 to 200 bytes) · 3 key of this addition (1 to 200 bytes): a part that was added
--          before is not added again · 4 how many jobs this addition has in all calls, up to a million · 5 how many of them
--          came with earlier calls · 6 JSON of the callbacks of a new batch, {"on_success": [12 words], "on_failure": ...,
--          "on_end": ...}; '' for a batch that exists · then 12 words for each job, as for sb_enqueue, at most 500 jobs, without
--          unique keys
-- Returns: {OK, total, open, done, failed, jobs added so far, ms created, ms ended or '', why a callback was not enqueued or ''}
--          · {GONE} there is no such batch · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(jobs * log(queue))
local MAX_TEXT, MAX_JOBS, MAX_TOTAL = 200, 500, 1e6
local CALLBACKS = { on_success = true, on_failure = true, on_end = true }
local HEAD = 6

local function check_name(text, what)
    if (text or '') ~= '' and #text <= MAX_TEXT and strings.is_valid(text) then return nil end
    return what .. ' has 1 to ' .. MAX_TEXT .. ' bytes of UTF-8'
end

-- Reads the callbacks: name -> words as JSON.
local function read_callbacks(text)
    local ok, found = pcall(cjson.decode, text == '' and '{}' or text)
    arguments.need(ok and type(found) == 'table', 'callbacks are an object')
    local texts = {}
    for name, words in pairs(found) do
        if not CALLBACKS[name] or type(words) ~= 'table' or #words ~= job_words.COUNT then
            arguments.refuse('a callback is on_success, on_failure or on_end, with the words of a job')
        end
        for i = 1, #words do words[i] = tostring(words[i]) end
        local wrong = job_words.check(job_words.read(words, 1))
        arguments.refuse(wrong and name .. ': ' .. wrong)
        texts[name] = cjson.encode(words)
    end
    return texts
end

local function read_jobs(ARGV, id, count)
    local specs = {}
    for i = 1, count do
        local spec = job_words.read(ARGV, HEAD + 1 + (i - 1) * job_words.COUNT)
        arguments.refuse(job_words.check(spec) or spec.unique and 'a job of a batch has no unique key')
        spec.batch, specs[i] = id, spec
    end
    return specs
end

local function enqueue_all(root, specs, first, now, added)
    redis.call('SCARD', keys.queues(root))
    for i = first, #specs do added[#added + 1] = jobs.enqueue(root, specs[i], now) end
end

-- Lists the queues, and rings the bells of those that have new ready jobs.
local function announce(root, specs, first)
    local rings = {}
    for i = first, #specs do
        rings[specs[i].queue] = (rings[specs[i].queue] or 0) + (specs[i].delay == 0 and 1 or 0)
    end
    for queue, number in pairs(rings) do
        redis.call('SADD', keys.queues(root), queue)
        if number > 0 then jobs.ring_bell(root, queue, number) end
    end
end

-- Adds the jobs that earlier calls have not added. Answers nil, or why it cannot.
local function add(root, id, batch, call, specs, now)
    local key, field = keys.batch(root, id), 'add:' .. call.key
    local there, of = string.match(redis.call('HGET', key, field) or '', '^(%d+)/(%d+)$')
    there = tonumber(there or 0)
    if of and tonumber(of) ~= call.total then arguments.refuse('this addition began with ' .. of .. ' jobs') end
    arguments.need(call.from <= there and call.from + #specs <= call.total, 'an addition comes in order, and in full')
    arguments.need(of or not batch.ended, 'the batch has ended')
    if not of then batch.total, batch.open = batch.total + call.total, batch.open + call.total end
    arguments.need(batch.total <= MAX_TOTAL, 'a batch has at most a million jobs')
    local first, added = there - call.from + 1, {}
    if first > #specs then return end
    local ok, caught = pcall(enqueue_all, root, specs, first, now, added)
    if not ok then
        for i = #added, 1, -1 do jobs.undo_enqueue(root, added[i]) end
        error(caught, 0)
    end
    batch.added = batch.added + #added
    redis.call('HSET', key, field, there + #added .. '/' .. call.total)
    for name, text in pairs(call.callbacks) do redis.call('HSET', key, name, text) end
    job_batches.write(root, id, batch)
    announce(root, specs, first)
end
return function(KEYS, ARGV)
    local root, id, count = KEYS[1], ARGV[2], (#ARGV - HEAD) / job_words.COUNT
    arguments.refuse(arguments.check_root(root) or check_name(id, 'a batch') or check_name(ARGV[3], 'a key'))
    if count < 1 or count > MAX_JOBS or count % 1 ~= 0 then
        arguments.refuse('each job comes in ' .. job_words.COUNT .. ' words, 1 to ' .. MAX_JOBS .. ' of them')
    end
    local now, clock = arguments.need_now(ARGV[1])
    local batch = job_batches.read(root, id)
    local call = { key = ARGV[3], total = arguments.parse_count(ARGV[4], 1, MAX_TOTAL),
        from = arguments.parse_count(ARGV[5], 0, MAX_TOTAL), callbacks = {} }
    arguments.need(call.total and call.from, 'an addition has 1 to a million jobs')
    local specs = read_jobs(ARGV, id, count)
    if not batch then
        if ARGV[6] == '' then return { replies.GONE } end
        call.callbacks = read_callbacks(ARGV[6])
        batch = job_batches.begin(root, now)
    end
    add(root, id, batch, call, specs, now)
    pulse.ring(root, clock)
    return { replies.OK, unpack(job_batches.list(batch)) }
end
