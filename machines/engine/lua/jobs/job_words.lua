-- needs: arguments, json, ready_order, strings, values
-- The twelve words of a job that no instance waits for, as sb_enqueue and sb_batch get them.
local job_words = {}

local MAX_INPUT, MAX_UNIQUE, MAX_STOP = 65536, 200, 1000
local MAX_DELAY = 3.2e11 -- ten years
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

-- Reads the words of a job from `at` on.
function job_words.read(ARGV, at)
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

-- Answers why the words cannot be a job, or nil.
function job_words.check(spec)
    return check_texts(spec) or check_numbers(spec)
end

job_words.COUNT = 12

return job_words
