-- needs: history_entries, lua_source, payloads, programs, pulse, refusals, replies, reserved_events, step_compiler
-- needs: step_plan, step_source, timers, traces, work_budget
-- The fast path of `sb_fire`, `sb_complete` and `sb_tick`: compiled steps by the fields of the instance, its state and the
-- event. Each is compiled at its first use, or a step of a chart at its third, and kept with its program, so that it goes with
-- it.
local compiled_steps = {}

local MAX_SHAPES = 32 -- orders of fields of one program; instances of others are left to the interpreter
local MAX_COMPILED = 2000 -- steps of all programs
local MAX_FIELDS = 40 -- of the hash of an instance
local CHARTS_FROM = 3 -- use from which a step of a chart is compiled: a chart has many configurations, and most are rare
local MAX_RARE = 2000 -- steps of one order of fields whose uses are counted

local DUE, EVENT, STATE = 2, 3, 4 -- of a timer
local NO_PAYLOAD = {}

local compiled_count, epoch = 0, 0
local concat, next = table.concat, next
local find_program, add_job = programs.find, history_entries.add_job
local start_budget = work_budget.start

-- The names of the fields at the odd places of what HGETALL answers.
local function read_names(flat)
    local names = {}
    for i = 1, #flat, 2 do names[#names + 1] = flat[i] end
    return names
end

-- Makes the test whether HGETALL answered these names, in this order.
local function make_test(names)
    local tests = {}
    for i, name in ipairs(names) do tests[i] = 'f[' .. i * 2 - 1 .. '] == ' .. lua_source.quote(name) end
    tests[#tests + 1] = 'f[' .. #names * 2 + 1 .. '] == nil'
    return lua_source.load('return function(f) return ' .. concat(tests, ' and ') .. ' end')
end

local function open_shapes(program)
    program.shapes = { epoch = epoch, count = 0, of = {}, last = nil, previous = nil }
    return program.shapes
end

local function find_shape(program, flat)
    local shapes = program.shapes
    if not shapes or shapes.epoch ~= epoch then shapes = open_shapes(program) end
    local last, previous = shapes.last, shapes.previous
    if last and last.fits(flat) then return last end
    if previous and previous.fits(flat) then -- of an instance whose fields come and go
        shapes.last, shapes.previous = previous, last
        return previous
    end
    local names = read_names(flat)
    local key = concat(names, '\n')
    local shape = shapes.of[key]
    if not shape then
        if shapes.count >= MAX_SHAPES or #names > MAX_FIELDS then return nil end
        local fits = step_source.compile(program, key, make_test, names)
        if not fits then return nil end
        shape = { names = names, positions = {}, steps = {}, rare = {}, rare_count = 0, fits = fits }
        for i, name in ipairs(names) do shape.positions[name] = i * 2 end
        shapes.of[key], shapes.count = shape, shapes.count + 1
    end
    shapes.last, shapes.previous = shape, last
    return shape
end

-- Counts the uses of a step that is not compiled. Tells whether it is used too rarely.
local function is_rare(shape, state, event)
    if shape.rare_count >= MAX_RARE then shape.rare, shape.rare_count = {}, 0 end
    local uses = shape.rare[state] or {}
    shape.rare[state] = uses
    if not uses[event] then uses[event], shape.rare_count = 0, shape.rare_count + 1 end
    uses[event] = uses[event] + 1
    return uses[event] < CHARTS_FROM
end

-- Compiles the step of an event. Answers the function, or false.
local function build(program, shape, state, event, flat)
    local config = step_compiler.find_configuration(program, shape, state)
    if not config then return false end
    if refusals.is_without_candidates(program, config, event) then
        return refusals.make_step(program, shape, config, event)
    end
    return step_compiler.build(program, shape, config, event, flat)
end

local function compile(program, shape, state, event, flat)
    if not program.flat and is_rare(shape, state, event) then return nil end
    compiled_count = compiled_count + 1
    if compiled_count > MAX_COMPILED then
        compiled_count, epoch = 0, epoch + 1
        return false
    end
    local name = state .. '\t' .. event
    local step = step_source.compile(program, name, build, program, shape, state, event, flat)
    local steps = shape.steps[state] or {}
    shape.steps[state], steps[event] = steps, step
    return step
end

local function find_definition(flat)
    for i = 1, #flat, 2 do
        if flat[i] == '_def' then return flat[i + 1] end
    end
end

-- Finds the compiled step of an event: answers it, the program and the positions of the fields; nil where the interpreter has
-- to look. `is_sent`: by a caller, who may send any name.
local function find_step(root, flat, event, is_sent)
    local program = find_program(root, flat[7] == '_def' and flat[8] or find_definition(flat))
    if not program then return nil end
    if is_sent and not program.known[event] then
        if reserved_events.is_reserved(event) then return nil end -- these come from the engine alone
        event = step_source.UNKNOWN
    end
    local shapes = program.shapes
    local shape = shapes and shapes.epoch == epoch and shapes.last
    if not shape or not shape.fits(flat) then shape = find_shape(program, flat) end
    local positions = shape and shape.positions
    local state = positions and flat[positions._state or 0]
    if not state then return nil end
    local steps = shape.steps[state]
    local step = steps and steps[event]
    if step == nil then step = compile(program, shape, state, event, flat) end
    if not step then return nil end
    return step, program, positions
end

local try = step_plan.try

-- Answers what a step has answered; nil where it gave up, or a write failed and was taken back.
local function finish(ok, reply)
    work_budget.stop()
    if ok then return reply end
    return nil
end

-- Takes the step of an event if it is compiled: answers the reply of `sb_fire` and the program, or nil where the interpreter
-- has to look; nothing is written then. `flat`: what HGETALL answered for the instance; `short`: with the revision in place
-- of the instance.
function compiled_steps.fire(root, id, key, flat, event, payload_text, expect, actor, reason, now, clock, permit, short)
    local step, program, positions = find_step(root, flat, event, true)
    if not step then return nil end
    if expect ~= '' and tonumber(expect) ~= tonumber(flat[positions._version]) then
        return { replies.CONFLICT, flat[positions._version] }
    end
    if permit and (program.has_allow or program.approval) then return nil end
    work_budget.start()
    local payload, kept = payloads.parse(payload_text)
    if not payload or payloads.find_misfit(program, event, payload) then return nil end
    if not program.known[event] then
        work_budget.stop()
        return step(flat, event), program
    end
    clock = clock or pulse.read_clock()
    return finish(try(step, flat, id, key, payload, kept, actor, reason, now, clock, permit or traces.current, short)),
        program
end

-- Takes a step that ends a job.
local function end_job(step, flat, id, key, payload, job, row, ending)
    local now = ending.now
    local kept = add_job(next(payload) and payloads.encode_for_history(payload) or '0', row, now, true)
    return step(flat, id, key, payload, kept, '', '', now, ending.clock or pulse.read_clock(), ending.traced, ending.short,
        job, ending.batch)
end

-- The same for the end of a job that the instance waits for: `event` is done.invoke.<id> or error.invoke.<id>, `ending` as
-- in `completion.end_invoke`. A step that ends a job of a flat machine leaves the state that requested it; whether one of a chart
-- does after an error, the interpreter finds out.
function compiled_steps.complete(root, id, key, flat, event, payload, job, row, ending)
    local step, program = find_step(root, flat, event, false)
    if not step or not program.flat and string.sub(event, 1, 5) ~= 'done.' then return nil end
    start_budget()
    return finish(try(end_job, step, flat, id, key, payload, job, row, ending))
end

-- The same for a timer of an instance: answers nil where the interpreter has to look, also for a timer that is not due.
function compiled_steps.fire_timer(root, id, key, flat, timer_id, now)
    local program = programs.find(root, find_definition(flat))
    if not program or program.flat then return nil end
    local shape = find_shape(program, flat)
    local positions = shape and shape.positions
    if not positions or not positions._timers or not positions._version then return nil end
    work_budget.start()
    local timed = { program = program, id = id, revision = tonumber(flat[positions._version]), now = now,
        raw = { _timers = flat[positions._timers] } }
    local timer = timers.take(timed, timer_id)
    local step = timer and timer[DUE] <= now and timer[STATE] ~= 0 and find_step(root, flat, timer[EVENT], false)
    local reply = step and finish(try(step, flat, id, key, NO_PAYLOAD, '0', 'timer', '', now, pulse.read_clock(), nil, true,
        nil, nil, timed))
    work_budget.stop()
    return reply or nil
end

return compiled_steps
