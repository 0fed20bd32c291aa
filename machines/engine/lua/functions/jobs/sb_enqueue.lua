-- needs: arguments, jobs, json, keys, pulse, ready_order, replies, strings, traces, values
-- sb_enqueue: adds jobs that no instance waits for to queues; all of them, or none.
-- KEYS:    1 root of the partition
-- ARGV:    1 now (ms, or '') · then 12 arguments for each job, at most 500 jobs: src, queue, input (JSON, or ''), priority
--          (0..9; for a job of a group followed by the group's weight, 0.1 to 10, and its name: '5 1 acme'), delay in ms
--          ('debounce 5000': it replaces the handler and input of the waiting job with this unique key and begins that
--          job's delay anew), unique key or '', attempts (1..100), backoff in ms, lease in ms, timeout in ms (0 =
--          none), jitter ('1' or '0'), exception kinds not to retry (between spaces) · after the arguments of a single
--          job, optionally, an idempotency key of 1 to 200 bytes: for a day, the same key adds no other job to the
--          partition · behind that ('' for none), optionally, a W3C traceparent: the handlers go on with that trace
-- Returns: {OK, job, {} or {field, value, ...}, ...}: the fields of an earlier open job that holds the unique key, or of the
--          job of an earlier call with the idempotency key while that job is there · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(jobs * log(queue))
local WORDS, MAX_JOBS = 12, 500
local MAX_INPUT, MAX_UNIQUE, MAX_STOP = 65536, 200, 1000
local MAX_DELAY = 3.2e11 -- ten years
local MAX_KEY, KEEP_MS = 200, 86400000 -- bytes of an idempotency key; how long it is remembered
local NAME = '^[%a_][%w_.-]*$'

local function is_name(text)
    return #text <= 64 and string.find(text, NAME) ~= nil
end

local function check_texts(spec)
    if not is_name(spec.src) then return 'a handler has a name of letters, digits, _ . and -' end
    if not is_name(spec.queue) then return 'a queue has a name of letters, digits, _ . and -' end
    if #spec.input > MAX_INPUT then return 'an input has at most ' .. MAX_INPUT .. ' bytes of JSON' end
    if spec.unique and (#spec.unique > MAX_UNIQUE or not strings.is_valid(spec.unique)) then
        return 'a unique key has at most ' .. MAX_UNIQUE .. ' bytes of UTF-8'
    end
    local wrong = ready_order.check_group(spec.group)
    if wrong then return wrong end
    if #spec.stop > MAX_STOP then return 'the kinds not to retry have at most ' .. MAX_STOP .. ' bytes' end
    local ok, why = pcall(json.read, spec.input == '' and 'null' or spec.input)
    return not ok and 'the input: ' .. values.describe_error(why) or nil
end

local function check_numbers(spec)
    if not spec.priority then return "a priority is 0 to 9, or that, a weight and a group: '5 1 acme'" end
    if spec.weight < ready_order.MIN_WEIGHT or spec.weight > ready_order.MAX_WEIGHT then
        return 'a weight is ' .. ready_order.MIN_WEIGHT .. ' to ' .. ready_order.MAX_WEIGHT
    end
    if not spec.delay then return 'a delay is ms, up to ten years' end
    if spec.debounce and (spec.delay == 0 or not spec.unique) then return 'debounce needs a delay and a unique key' end
    if not spec.attempts then return 'attempts are 1 to 100' end
    if not spec.backoff then return 'a backoff has 0 to ' .. arguments.MAX_MS .. ' ms' end
    if not spec.lease then return 'a lease has 1 to ' .. arguments.MAX_MS .. ' ms' end
    if not spec.timeout then return 'a timeout is ms, up to a hundred days' end
    return nil
end

-- Parses `<priority>` or `<priority> <weight> <group>`; a priority of nil for anything else.
local function parse_order(text)
    local priority, weight, group = string.match(text, '^(%d) ([%d.]+) (.+)$')
    if not priority then return arguments.parse_count(text, 0, ready_order.LOWEST), 1, '' end
    if not tonumber(weight) then return nil, 1, '' end
    return tonumber(priority), tonumber(weight), group
end

local function read(ARGV, at)
    local count = arguments.parse_count
    local priority, weight, group = parse_order(ARGV[at + 3])
    local debounce = string.match(ARGV[at + 4], '^debounce (%d+)$')
    return {
        src = ARGV[at], queue = ARGV[at + 1], input = ARGV[at + 2],
        priority = priority, weight = weight, group = group,
        delay = count(debounce or ARGV[at + 4], 0, MAX_DELAY), debounce = debounce,
        unique = ARGV[at + 5] ~= '' and ARGV[at + 5] or nil,
        attempts = count(ARGV[at + 6], 1, 100),
        backoff = count(ARGV[at + 7], 0, arguments.MAX_MS),
        lease = count(ARGV[at + 8], 1, arguments.MAX_MS),
        timeout = count(ARGV[at + 9], 0, 100 * arguments.MAX_MS),
        jitter = ARGV[at + 10] ~= '0',
        stop = ARGV[at + 11],
    }
end

-- Answers the reply to an earlier call with this key; nil when there was none.
local function find_earlier(root, once)
    local job = redis.call('GET', keys.enqueued(root, once))
    return job and { replies.OK, job, redis.call('HGETALL', keys.job(root, job)) } or nil
end

local function enqueue_all(root, specs, now, added, once)
    for i, spec in ipairs(specs) do
        local job, is_earlier, before = jobs.enqueue(root, spec, now)
        added[i] = { job = job, there = is_earlier, before = before }
    end
    for queue in pairs(added.queues) do redis.call('SADD', keys.queues(root), queue) end
    if once then redis.call('SET', keys.enqueued(root, once), added[1].job, 'PX', KEEP_MS) end
end

local function undo(root, specs, added, now)
    for i = #added, 1, -1 do
        local one = added[i]
        if not one.there then
            jobs.undo_enqueue(root, one.job, specs[i], one.before)
        elseif one.before then
            jobs.undo_replace(root, one.job, one.before, now)
        end
    end
end

return function(KEYS, ARGV)
    local root, once = KEYS[1], nil
    local further = (#ARGV - 1) % WORDS -- the key, or the key and a traceparent
    local count = (#ARGV - 1 - further) / WORDS
    if further == 2 then traces.begin(ARGV[#ARGV]) end
    local key = further > 0 and ARGV[count * WORDS + 2] or ''
    if key ~= '' then once = key end
    local bad, specs = arguments.check_root(root) or arguments.check('', '', '', '', ARGV[1] or ''), {}
    if count < 1 or count > MAX_JOBS or further > 2 or once and count > 1 then
        bad = 'each job comes in ' .. WORDS .. ' words, 1 to ' .. MAX_JOBS .. ' of them'
    end
    if once and (#once > MAX_KEY or not strings.is_valid(once)) then
        bad = 'an idempotency key has at most ' .. MAX_KEY .. ' bytes of UTF-8'
    end
    local added, rings = { queues = {} }, {}
    for i = 1, bad and 0 or count do
        specs[i] = read(ARGV, 2 + (i - 1) * WORDS)
        bad = bad or check_texts(specs[i]) or check_numbers(specs[i])
        added.queues[specs[i].queue] = true
    end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now, clock = arguments.read_now(ARGV[1])
    redis.call('SCARD', keys.queues(root))
    local earlier = once and find_earlier(root, once)
    if earlier then return earlier end
    local ok, caught = pcall(enqueue_all, root, specs, now, added, once)
    if not ok then
        undo(root, specs, added, now)
        error(caught, 0)
    end
    local reply, news = { replies.OK }, false
    for i, one in ipairs(added) do
        local queue = specs[i].queue
        news = news or not one.there or one.before
        if not one.there and specs[i].delay == 0 then rings[queue] = (rings[queue] or 0) + 1 end
        reply[#reply + 1] = one.job
        reply[#reply + 1] = one.there and redis.call('HGETALL', keys.job(root, one.job)) or {}
    end
    for queue, number in pairs(rings) do jobs.ring_bell(root, queue, number) end
    if news then pulse.ring(root, clock) end
    return reply
end
