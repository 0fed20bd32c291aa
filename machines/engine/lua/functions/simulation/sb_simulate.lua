-- needs: arguments, draft_programs, expansions, json, replies, simulations, time_limit, values, work_budget
-- sb_simulate: takes steps on an instance that exists in memory only, by the interpreter, without reading or writing a key.
-- flags:   no-writes
-- KEYS:    1 root of a partition, for the routing and the names of keys; nothing needs to exist there
-- ARGV:    1 program (JSON, as for sb_publish) · 2 script (JSON): id, now (ms), data, optionally parent {machine, id, invoke,
--          depth}, snapshot of an earlier call, and inputs: {event, payload, groups} · {advance: ms or "next"} ·
--          {edit: data} · {job: invoke, done: result} · {job, failed: error, kind, attempts} ·
--          {child: invoke, done | failed | event, payload} · {message: event, payload, from: {machine, id}}; at most 1000.
--          In place of inputs `expand`, a list of snapshots, with alphabet ({event, payload}, ...), results (invoke ->
--          results of its job or child), properties (expression trees) and first (number of the input of the first
--          snapshot to begin with)
-- Returns: {OK, JSON, record (JSON), ...}: {done: inputs that are over, snapshot to continue from, or absent when the instance
--          could not begin}; then a record for each step, in some ms; for expand {done: snapshots,
--          following: the input with which the last one goes on} and for each the JSON of what it is and of what each
--          input leads to · {BADPAYLOAD, why, field} the data does not fit · {BADARG, why}
-- Notifies: nothing
-- Cost:    as sb_explain for each step; compiling the program, once for each that is not remembered
local MAX_INPUTS, MAX_SCRIPT, MAX_REPLY = 1000, 4194304, 1048576

local function decode(text)
    local ok, found = pcall(json.read, text or '', -4)
    arguments.refuse(not ok and 'the script is not JSON: ' .. values.describe_error(found))
    arguments.need(values.kind_of(found) == 'object', 'the script is an object')
    return found
end
local function check_script(script)
    arguments.need(type(script.id) == 'string', 'the script has an id')
    arguments.need_now(type(script.now) == 'number' and string.format('%.0f', script.now) or 'none')
    local inputs, data = script.inputs or json.list(), script.data or {}
    arguments.need(json.is_array(inputs) and #inputs <= MAX_INPUTS, 'inputs are a list of at most ' .. MAX_INPUTS)
    arguments.need(values.kind_of(data) == 'object', 'data is an object, not ' .. values.kind_of(data))
    return inputs, data
end

-- Expands snapshots until the time is used up.
local function expand(program, script)
    local reply, bytes, is_late = { replies.OK, '' }, 0, time_limit.start()
    local properties = expansions.compile_properties(program, script.properties)
    local first, following = type(script.first) == 'number' and math.max(1, script.first) or 1, nil
    for i, snapshot in ipairs(script.expand) do
        local edges
        edges, following = expansions.expand(program, script, snapshot, properties, i == 1 and first or 1, is_late)
        local text = json.encode({ is = expansions.describe(program, script, snapshot, properties), edges = edges }, -64)
        reply[i + 2], bytes = text, bytes + #text
        if following or is_late() or bytes > MAX_REPLY then break end
    end
    reply[2] = json.encode({ done = #reply - 2, following = following })
    return reply
end

local function simulate(program, script, inputs, data)
    local reply, bytes, is_late, done = { replies.OK, '' }, 0, time_limit.start(), 0
    local function emit(text)
        reply[#reply + 1], bytes = text, bytes + #text
    end
    local function is_over() return bytes > MAX_REPLY or is_late() end
    local run = simulations.open(program, script)
    run.input = 0
    if not run.raw then
        local parent = type(script.parent) == 'table' and json.encode(script.parent) or nil
        local why, field = simulations.create(run, data, parent, emit)
        if why then return { replies.BAD_PAYLOAD, why, field } end
    end
    while run.raw and done < #inputs and (reply[3] == nil or not is_over()) do
        run.input = done + 1
        local why, goes_on = simulations.take_input(run, inputs[done + 1], emit, is_over)
        if why then return { replies.BAD_ARGUMENT, 'input ' .. done + 1 .. ': ' .. why } end
        if goes_on then break end
        done = done + 1
    end
    reply[2] = json.encode({ done = done, snapshot = run.raw and simulations.save(run) or nil }, -64)
    return reply
end

return function(KEYS, ARGV)
    local root = arguments.need(KEYS[1], 'the root is missing')
    arguments.need(ARGV[1], 'the program is missing')
    arguments.need(#(ARGV[2] or '') <= MAX_SCRIPT, 'a script has at most ' .. MAX_SCRIPT .. ' bytes')
    local script = decode(ARGV[2])
    local inputs, data = check_script(script)
    local program = draft_programs.compile(root, ARGV[1])
    local ok, found = pcall(script.expand and expand or simulate, program, script, inputs, data)
    work_budget.stop()
    if ok then return found end
    return { replies.BAD_ARGUMENT, 'the snapshot cannot be continued: ' .. values.describe_error(found) }
end
