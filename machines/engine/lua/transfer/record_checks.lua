-- needs: arguments, chart, creation, data_conversion, delivery, json, keys, programs, sends, strings, timers, values
-- Checks a record of an instance or a job before anything of it is written. A record comes from a file, so nothing in it is
-- trusted: each part is compared with the program of the definition that is published here. Every check throws a sentence.
local record_checks = {}

local BOOKKEEPING = { _version = true, _state = true, _entered = true, _def = true, _created = true, _jobs = true, _actor = true,
    _parent = true, _timers = true, _children = true, _done = true, _suspended = true, _pin = true, _came = true,
    _dead = true, _plans = true }
local NUMBERS = { created = true, attempts = true, backoff = true, lease = true, priority = true, timeout = true, due = true,
    attempt = true, weight = true, taken = true, started = true, deadline = true, extended = true, finished = true,
    handled = true }
local TEXTS = { place = 10, src = 64, queue = 64, instance = 200, invoke = 80, unique = 200, group = 200, stop = 4000, input
    = 65536, jitter = 1, token = 100, traceparent = 55, batch = 200, worker = 600, error = 8000, kind = 1000, trace = 65536,
    log = 65536, progress = 8192 }
local PLACES = { ready = true, leased = true, delayed = true, dead = true, handled = true }
local KINDS = { event = true, start = true, stop = true, done = true, lost = true, bounce = true }
local MAX_STEPS, MAX_HELD, MAX_TIMERS, MAX_JOBS, MAX_DATA, MAX_NUMBER = 10256, 1000, 1000, 1100, 65536, 1e15
local MAX_TEXT = 262144 -- bytes of one bookkeeping field, of a step, of a message
local MAX_JOB_FIELDS = 60
local QUEUE = '^[%a_][%w_.-]*$'

local function fail(...)
    values.fail(string.format(...))
end

local function show(value)
    return string.sub(tostring(value), 1, 60)
end

local function check_text(value, what, most)
    if type(value) ~= 'string' then fail('%s is text, not %s', what, type(value)) end
    if #value > most then fail('%s has %d bytes; %d are allowed', what, #value, most) end
    if not strings.is_valid(value) or string.find(value, '%z') then fail('%s is not UTF-8', what) end
    return value
end

local function check_number(value, what)
    local number = type(value) == 'string' and #value <= 24 and tonumber(value)
    if not number or number < 0 or number > MAX_NUMBER then fail('%s is a number from 0, not %s', what, show(value)) end
    return number
end

local function check_ms(value, what)
    if not (value and value ~= '' and arguments.read_now(value)) then
        fail('%s is ms since the epoch, not %s', what, show(value))
    end
end

-- Checks a list; `each` is called with its items.
local function check_list(list, what, most, each)
    if type(list) ~= 'table' then fail('%s is a list', what) end
    if #list > most then fail('%s has %d items; %d are allowed', what, #list, most) end
    for key in pairs(list) do
        if type(key) ~= 'number' then fail('%s is a list', what) end
    end
    for i = 1, #list do each(list[i], what .. ' ' .. i) end
end

local function decode(text, what)
    local ok, found = pcall(json.read, text)
    if not ok then fail('%s: %s', what, values.describe_error(found)) end
    return found
end

-- Turns names and values in turn into a table; each name once.
local function read_pairs(list, what, most)
    local found, count = {}, 0
    check_list(list, what, 2 * most, function(item) check_text(item, what, MAX_TEXT) end)
    if #list % 2 == 1 then fail('%s has a name without a value', what) end
    for i = 1, #list, 2 do
        if found[list[i]] then fail('%s has %s twice', what, show(list[i])) end
        found[list[i]], count = list[i + 1], count + 1
    end
    return found, count
end

-- Checks a data field and answers its text as the engine stores it.
local function check_field(field, raw)
    local ok, value = pcall(field.decode, raw)
    if not ok then fail('the data field %s: %s', field.name, values.describe_error(value)) end
    if not field.scalar then value = values.to_nil(decode(raw, 'the data field ' .. field.name)) end
    local fits, stored = pcall(field.encode, value)
    if not fits then fail('the data field %s', values.describe_error(stored)) end
    return field.scalar and stored or raw
end

local function check_data(program, raw)
    local bytes = 0
    for name, value in pairs(raw) do
        local field = program.fields[name]
        if field then
            raw[name] = check_field(field, value)
            bytes = bytes + #name + #raw[name]
        elseif not BOOKKEEPING[name] and string.sub(name, 1, 3) ~= data_conversion.KEPT
            and not (string.sub(name, 1, 3) == '_h:' and program.index[string.sub(name, 4)]) then
            fail("the definition has no data field '%s'", show(name))
        end
    end
    if bytes > MAX_DATA then fail('the data has %d bytes; %d are allowed', bytes, MAX_DATA) end
end

local function check_recorded(program, raw)
    for name, value in pairs(raw) do
        if string.sub(name, 1, 3) == '_h:' then
            for state in string.gmatch(value, '[^\n]+') do
                if not program.index[state] then fail("the definition has no state '%s'", show(state)) end
            end
        end
    end
end

local function check_timer(program, timer, what)
    if type(timer) ~= 'table' then fail('%s is a list', what) end
    local id, due, event, state, sendid, payload, target, facts, since = unpack(timer, 1, 9)
    if type(id) ~= 'string' or #id > 40 or not string.find(id, '^%d+%.%d+$') then fail('%s has no id', what) end
    if type(due) ~= 'number' or due < 0 or due > MAX_NUMBER then fail('%s has no due time', what) end
    if arguments.check_event(event) then fail('%s has no event', what) end
    if type(state) ~= 'number' or state % 1 ~= 0 or state < 0 or state > #program.states then
        fail('%s has no such state', what)
    end
    for _, text in ipairs({ sendid, payload, target }) do check_text(text, what, MAX_TEXT) end
    if type(sendid) ~= 'string' or type(payload) ~= 'string' or type(target) ~= 'string' then
        fail('%s is not complete', what)
    end
    if payload ~= '' then decode(payload, what) end
    if facts ~= nil and facts ~= cjson.null and type(facts) ~= 'number' then fail('%s has bad facts', what) end
    if since ~= nil and type(since) ~= 'number' then fail('%s has no time', what) end
end

local function check_timers(program, raw)
    if not raw._timers then return end
    local list = decode(raw._timers, 'the timers')
    check_list(cjson.decode(raw._timers), 'the timers', MAX_TIMERS, function(timer, what) check_timer(program, timer, what) end)
    if not json.is_array(list) then fail('the timers are a list') end
end

local function check_address(address, what, ...)
    for _, name in ipairs({ 'machine', 'id', ... }) do
        if type(address) ~= 'table' or type(address[name]) ~= 'string' then fail('%s has no %s', what, name) end
    end
end

local function check_family(raw)
    if raw._parent then
        local parent = decode(raw._parent, 'the parent')
        check_address(parent, 'the parent', 'invoke')
        if parent.depth ~= nil and type(parent.depth) ~= 'number' then fail('the parent has a bad depth') end
    end
    if raw._children then
        local children = decode(raw._children, 'the children')
        if values.kind_of(children) ~= 'object' then fail('the children are an object') end
        for _, child in pairs(children) do check_address(child, 'a child') end
    end
end

local function check_bookkeeping(raw)
    if not arguments.parse_whole(raw._version or '') then fail('the revision is a whole number, not %s', show(raw._version)) end
    check_ms(raw._entered, 'the time of entry')
    check_ms(raw._created, 'the time of creation')
    if raw._pin and raw._pin ~= '1' then fail("a pin is '1', not %s", show(raw._pin)) end
    if raw._suspended then check_ms(raw._suspended, 'the time of the suspension') end
    if raw._done and raw._done ~= '1' then fail('done is 1') end
    check_text(raw._actor or '', 'the actor', 600)
    check_text(raw._plans or '', 'the list of its moves', 64)
end

-- Finds the program of the version that the record names, as it is published here.
local function find_program(root, raw)
    local version = string.match(raw._def or '', '^(%d+):%x+$')
    if not version then fail('a definition is named <version>:<digest>, not %s', show(raw._def)) end
    raw._def = redis.call('HGET', keys.meta(root), 'def:' .. version)
    if not raw._def then fail('version %s is not published here', version) end
    local program, why = programs.load(root, raw._def)
    if not program then fail('%s', why) end
    return program
end

local function check_history(list)
    check_list(list, 'the history', MAX_STEPS, function(text, what)
        local ok, step = pcall(cjson.decode, check_text(text, what, MAX_TEXT))
        local fits = ok and type(step) == 'table' and type(step[1]) == 'number' and type(step[2]) == 'number'
            and type(step[3]) == 'string' and #step >= 9
        if not fits then fail('%s is no step', what) end
    end)
end

local function check_held(list)
    check_list(list, 'the held messages', MAX_HELD, function(text, what)
        local ok, message = pcall(cjson.decode, check_text(text, what, MAX_TEXT))
        if not (ok and type(message) == 'table' and KINDS[message.kind] and delivery.check_body(message.kind, message.body)) then
            fail('%s is no message', what)
        end
    end)
end

local function check_messages(list, machine, id)
    check_list(list, 'the messages', 40000, function(item, what) check_text(item, what, MAX_TEXT) end)
    if #list % 4 ~= 0 then fail('a message has four texts') end
    for i = 1, #list, 4 do
        local body = KINDS[list[i]] and delivery.parse(list[i], list[i + 3])
        if not body or #list[i + 1] > 64 or creation.check_id(list[i + 2]) then fail('message %d is none', (i + 3) / 4) end
        if body.from.id ~= id or body.from.machine ~= machine then fail('message %d has another sender', (i + 3) / 4) end
    end
end

-- Checks a job's record {id, score, field, value, ...}; answers {id, score, fields}.
function record_checks.check_job(record, instance)
    if type(record) ~= 'table' then fail('a job is a list') end
    local id, score = record[1], record[2]
    if type(id) ~= 'string' or #id > 40 or not string.find(id, '^%d+%-%d+$') then fail('a job has an id, not %s', show(id)) end
    local row = read_pairs({ unpack(record, 3) }, 'job ' .. id, MAX_JOB_FIELDS)
    for name, value in pairs(row) do
        local what = string.format('%s of job %s', show(name), id)
        if NUMBERS[name] then check_number(value, what) elseif TEXTS[name] then check_text(value, what, TEXTS[name]) else
            fail('a job has no field %s', show(name))
        end
    end
    for _, name in ipairs({ 'queue', 'src' }) do
        if not string.find(row[name] or '', QUEUE) then fail('job %s has no %s', id, name) end
    end
    if not PLACES[row.place or ''] or not row.created then fail('job %s has no place', id) end
    if tonumber(row.priority or 5) > 9 then fail('job %s has no such priority', id) end
    if row.batch and row.place ~= 'dead' and row.place ~= 'handled' then
        fail('job %s belongs to the batch %s, which does not move: let it end first', id, show(row.batch))
    end
    row.batch = nil
    if instance and row.instance ~= instance then fail('job %s belongs to another instance', id) end
    if row.input then decode(row.input == '' and 'null' or row.input, 'the input of job ' .. id) end
    if row.log then decode(row.log, 'the log of job ' .. id) end
    return { id = id, score = check_number(score, 'the score of job ' .. id), row = row }
end

local function check_wrong(text)
    if text == nil or text == cjson.null then return {} end
    local causes = decode(check_text(text, 'the failures', MAX_TEXT), 'the failures')
    if values.kind_of(causes) ~= 'object' then fail('the failures are an object') end
    for _, words in pairs(causes) do
        if not json.is_array(words) or type(words[1]) ~= 'string' or type(words[2]) ~= 'string' then
            fail('a failure has a kind and a text')
        end
    end
    return causes
end

local function read_times(list, what)
    local found = read_pairs(list, what, MAX_TIMERS)
    for _, ms in pairs(found) do check_number(ms, what) end
    return found
end

-- Checks the record of an instance, decoded from JSON. Answers its parts, ready to be written; throws a sentence.
function record_checks.check_instance(root, record)
    local bad = creation.check_id(record.id)
    if bad then fail('%s', bad) end
    local raw = read_pairs(record.hash, 'the instance', 1000)
    check_bookkeeping(raw)
    local program = find_program(root, raw)
    check_data(program, raw)
    check_recorded(program, raw)
    local ctx = chart.context(program, record.id, raw, 0)
    if not ctx then fail('the definition has no state %s', show(string.gsub(raw._state or '', '\n', ', '))) end
    check_timers(program, raw)
    check_family(raw)
    check_history(record.history)
    check_held(record.held)
    check_messages(record.messages, program.machine, record.id)
    local found = { ctx = ctx, raw = raw, entered = read_times(record.entered, 'the times of entry'), jobs = {},
        late = read_times(record.late, 'the late timers'), causes = check_wrong(record.wrong), history = record.history,
        held = record.held, messages = record.messages }
    check_list(record.jobs, 'the jobs', MAX_JOBS, function(job)
        table.insert(found.jobs, record_checks.check_job(job, record.id))
    end)
    timers.read_list(ctx)
    sends.read_children(ctx)
    return found
end

return record_checks
