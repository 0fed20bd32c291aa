-- needs: arithmetic, batches, builtins, chart_jobs, chart_writes, commit, data_indexes, durations, history_entries, json
-- needs: step_compiler, step_log, step_source, timers, values
-- Writes the source of a chart's step: its actions, its timers, and at the end of a path all writes of the step, in the order
-- of `commit`. Timers, places in the indexes and arrivals are written by the modules that write them for `commit`.
local chart_source = {}

local HISTORY_SLACK = 16 -- as in `commit`

local format, concat, sub = string.format, table.concat, string.sub
local line, quote, give_up = step_source.line, step_source.quote, step_source.give_up
local add, write_joined = step_compiler.add, step_compiler.write_joined

-- How far the writes of a step have come; `undo` reads it. `plan`: what is known of the path since it was compiled, false
-- before the first write.
local progress = { plan = false, indexed = false, placed = 0, scores = {}, recorded = false, counted = 0, log = {} }

-- Help at run time

local function open_timers(program, id, version, stored, now)
    return { program = program, id = id, version = tonumber(version), raw = { _timers = stored }, now = now }
end

local function arm_timer(timed, delay, event, state)
    timers.arm(timed, { timers.make_id(timed), timed.now + delay, event, state, '', '', '', 0 })
end

local function begin_writes(plan)
    progress.plan, progress.indexed, progress.placed, progress.recorded, progress.counted = plan, false, 0, false, 0
    progress.log = {}
    chart_jobs.begin()
end

local function begin_indexes()
    data_indexes.begin()
    progress.indexed = true
end

-- Writes the index of transitions. Answers the field for the hash.
local function change_arrivals(program, plan, id, before)
    local ctx = { chart = true, program = program, id = id, edges = plan.edges, config = plan.config, fresh = plan.fresh,
        moved = true, raw = { _came = before } }
    data_indexes.write_arrivals(ctx)
    return ctx.raw._came
end

local function write_timers(timed)
    chart_writes.write_timers(timed, progress.log)
end

-- Names that the source uses, and the order in which it gets them.
local GIVEN = {
    { 'call', redis.call }, { 'tonumber', tonumber }, { 'type', type }, { 'find', string.find },
    { 'number', json.number }, { 'quote', json.quote }, { 'null', json.null }, { 'is_true', values.is_true },
    { 'is_equal', values.is_equal }, { 'is_less', values.is_less }, { 'contains', values.contains },
    { 'check_number', values.check_number }, { 'arithmetic', arithmetic }, { 'builtins', builtins },
    { 'progress', progress }, { 'is_logged', step_log.is_on }, { 'log_step', step_log.append },
    { 'ring_pulse', commit.ring_pulse }, { 'change_index', data_indexes.change },
    { 'change_actor', data_indexes.change_actor }, { 'change_arrivals', change_arrivals },
    { 'begin_writes', begin_writes }, { 'begin_indexes', begin_indexes }, { 'leave_jobs', chart_jobs.leave },
    { 'start_jobs', chart_jobs.start }, { 'enqueue_jobs', chart_jobs.enqueue }, { 'finish_jobs', chart_jobs.finish },
    { 'has_transitions', batches.has_transitions }, { 'add_transitions', batches.add_transitions }, { 'get', values.get },
    { 'open_timers', open_timers }, { 'arm_timer', arm_timer }, { 'disarm', timers.disarm }, { 'clear_timers', timers.clear },
    { 'encode_timers', timers.encode }, { 'write_timers', write_timers }, { 'parse_duration', durations.parse },
    { 'remove_place', chart_writes.remove_from_index },
}
local names, given = {}, {}
for i, pair in ipairs(GIVEN) do names[i], given[i] = pair[1], pair[2] end
local HEADER = 'local ' .. concat(names, ', ') .. ', program, plans, refuse = ...\n'
    .. 'return function(f, id, key, payload, kept, actor, reason, now, clock, before, short, ending, batch, timed)\n'
    .. 'progress.plan = false\n'
    .. 'local stored = (ending or timed) and "" or actor\n' -- jobs and timers are no actors of an instance

-- Loads the source. `refuse`: answers where no transition is taken. Answers the function.
function chart_source.load(writer, refuse)
    local arguments = { unpack(given) }
    local at = #arguments
    arguments[at + 1], arguments[at + 2], arguments[at + 3] = writer.program, writer.plans, refuse
    return step_source.load(HEADER .. concat(writer.lines, '\n') .. '\nend', unpack(arguments))
end

-- Actions

-- Notes a job that an action requests.
local function request_job(writer, path, spec)
    if not spec.plain then give_up(writer) end
    path.requested[#path.requested + 1] = spec
end

-- Writes a `set` or `unset`, or notes the job of an `enqueue`; notes what changes on the path.
function chart_source.write_action(writer, path, action)
    local form = action[1]
    if form == 'enqueue' then return request_job(writer, path, action.spec) end
    step_compiler.write_action(writer, action, path.changes)
end

-- Timers

local function open(writer, path)
    if path.timed then return end
    local position = writer.positions._timers
    line(writer, format('timed = open_timers(program, id, f[%d], %s, now)', writer.positions._version,
        position and 'f[' .. position .. ']' or 'nil'))
    path.timed = true
end

local function has_timers(writer, path)
    return path.timed or writer.positions._timers
end

function chart_source.write_disarm(writer, path, state)
    if not has_timers(writer, path) then return end
    open(writer, path)
    line(writer, format('disarm(timed, %d)', state))
    path.armed = false
end

function chart_source.write_clearing(writer, path)
    if not has_timers(writer, path) then return end
    open(writer, path)
    line(writer, 'clear_timers(timed)')
    path.armed = false
end

function chart_source.write_arming(writer, path, transition, state)
    open(writer, path)
    local active = writer.active
    writer.active = nil
    local delay = step_source.write(transition.delay_tree, writer)
    writer.active = active
    line(writer, format('arm_timer(timed, parse_duration(%s), %s, %d)', delay[1], quote(transition.events[1]), state.index))
    path.armed = true
end

-- Texts

-- The parts of the answer that are not data: how each is written after the step, false for one that is written last.
local function list_bookkeeping(writer, path)
    local found = { _version = { '"', { 'version' }, '"' }, _def = { json.quote(writer.program.def) } }
    if path.moved then
        found._state, found._entered = { json.quote(path.config.text) }, { '"', { 'stamp' }, '"' }
        if writer.program.arrivals then found._came = false end
    end
    if path.timed then found._timers = false end
    if path.has_jobs then found._jobs = false end
    for name, text in pairs(path.records) do found[name] = { json.quote(text) } end
    if path.has_ended then found._done = { '"1"' } end
    return found
end

local function write_value(change)
    if change.literal then return json.quote(change.literal) end
    if change.field.plain then return { '"\\"" .. ' .. change.after .. ' .. "\\""' } end
    return { 'quote(' .. change.after .. ')' }
end

-- Writes the answer but for its last brace: the hash after the step as JSON. Texts that others may have written are checked
-- before anything is written: a number is digits, and text is quoted.
local function write_answer(writer, path)
    local parts, checked, program, positions = {}, {}, writer.program, writer.positions
    local kept = list_bookkeeping(writer, path)
    local function add_field(name, ...)
        add(parts, (#parts == 0 and '{' or ',') .. json.quote(name) .. ':', ...)
    end
    add_field('_version', unpack(kept._version))
    for i, name in ipairs(writer.shape.names) do
        local field, change, code = program.fields[name], path.changes.of[name], 'f[' .. i * 2 .. ']'
        if change then
            if not change.removed then add_field(name, write_value(change)) end
        elseif kept[name] and name ~= '_version' then
            add_field(name, unpack(kept[name]))
        elseif name == '_actor' then
            add_field(name, { '(stored ~= "" and quote(stored) or quote(' .. code .. '))' })
        elseif field and (field.type == 'integer' or field.type == 'number') or name == '_entered' or name == '_created' then
            checked[#checked + 1] = code
            add_field(name, '"', { code }, '"')
        elseif kept[name] == nil then
            add_field(name, { 'quote(' .. code .. ')' })
        end
    end
    for _, change in ipairs(path.changes) do
        if not positions[change.field.name] and not change.removed then add_field(change.field.name, write_value(change)) end
    end
    for name, written in pairs(kept) do
        if written and not positions[name] then add_field(name, unpack(written)) end
    end
    if not positions._actor then
        add(parts, { '(stored ~= "" and ' .. quote(',"_actor":') .. ' .. quote(stored) or "")' })
    end
    if kept._timers == false then
        add(parts, { '(armed and ' .. quote(',"_timers":') .. ' .. quote(armed) or "")' })
    end
    step_compiler.write_number_test(writer, checked)
    return write_joined(parts)
end

local function write_entry(writer, path, set)
    local program = writer.program
    local begin, rest = history_entries.describe(program, path.edges, writer.event, path.config.leaves)
    local entry = { begin, { 'version' }, '\t', { format('now - f[%d]', writer.positions._created) }, rest,
        { '(actor == "" and "" or "\\t@" .. quote(actor))' }, { '(reason == "" and "" or "\\t?" .. quote(reason))' },
        { '(kept == "0" and "" or "\\t" .. kept)' }, unpack(set) }
    line(writer, 'local entry = ' .. write_joined(entry)) -- as `history_entries.pack`
end

-- Writes

local function write_indexes(writer, path)
    local program, positions = writer.program, writer.positions
    local has_arrivals = program.arrivals and path.moved
    if has_arrivals then line(writer, 'begin_indexes()') end
    step_compiler.write_indexes(writer, path.changes, has_arrivals and '' or 'begin_indexes()')
    if not has_arrivals then return end
    line(writer, format('local came = change_arrivals(program, plan, id, %s)',
        positions._came and 'f[' .. positions._came .. ']' or 'nil'))
end

-- Writes the places of the leaves entered, and answers the keys of those left.
local function write_places(writer, path, plan)
    local states, was, left = writer.program.states, writer.config, {}
    for _, leaf in ipairs(path.config.leaves) do
        if path.fresh[leaf] then
            local key = states[leaf].index_key
            plan.places[#plan.places + 1] = key
            local at = #plan.places
            line(writer, format('progress.scores[%d] = %s', at, was.active[leaf] and format('call("ZSCORE", %s, id)', quote(key))
                or 'false'))
            line(writer, format('call("ZADD", %s, stamp, id) progress.placed = %d', quote(key), at))
        end
    end
    for _, leaf in ipairs(was.leaves) do
        if not path.config.active[leaf] then left[#left + 1] = states[leaf].index_key end
    end
    return left
end

local function write_hash(writer, path)
    local set, gone = { 'key', '"_version"', 'version' }, {}
    if path.moved then
        add(set, '"_state"', quote(path.config.text), '"_entered"', 'stamp')
        if writer.program.arrivals then add(set, '"_came"', 'came') end
    end
    for name, text in pairs(path.records) do add(set, quote(name), quote(text)) end
    if path.has_ended then add(set, '"_done"', '"1"') end
    if path.armed then add(set, '"_timers"', 'armed') end
    if path.started[1] then add(set, '"_jobs"', 'awaited') end
    for _, change in ipairs(path.changes) do
        if change.removed then
            gone[#gone + 1] = quote(change.field.name)
        else
            add(set, quote(change.field.name), change.after)
        end
    end
    local hash = concat(set, ', ')
    line(writer, format('if stored == "" then call("HSET", %s) else call("HSET", %s, "_actor", stored) end', hash, hash))
    if gone[1] then line(writer, format('call("HDEL", key, %s)', concat(gone, ', '))) end
    if path.has_jobs and not path.started[1] then
        line(writer, format('if ending or awaited ~= f[%d] then call("HSET", key, "_jobs", awaited) end', writer.positions._jobs))
    end
    if path.timed and not path.armed then
        line(writer, 'if timed.timers_changed then')
        line(writer, 'if armed then call("HSET", key, "_timers", armed) else call("HDEL", key, "_timers") end')
        line(writer, 'end')
    end
end

local function join_ids(edges)
    local found = {}
    for i, edge in ipairs(edges) do found[i] = edge.id end
    return concat(found, ' ')
end

local function has_fresh_leaf(path)
    for _, leaf in ipairs(path.config.leaves) do
        if path.fresh[leaf] then return true end
    end
    return false
end

-- Opens what the writes of a path need beside the source.
local function open_plan(writer, path)
    local plan = { edges = path.edges, config = path.config, fresh = path.fresh, exited = path.exited,
        moved = path.moved, has_ended = path.has_ended, started = path.started, requested = path.requested, places = {} }
    writer.plans[#writer.plans + 1] = plan
    line(writer, format('local plan = plans[%d]', #writer.plans))
    return plan
end

local function write_history(writer)
    local program = writer.program
    if program.history == 0 then return end
    line(writer, format('local long = call("RPUSH", %s .. id, entry) > %d', quote(program.history_prefix),
        program.history + HISTORY_SLACK))
    line(writer, 'progress.recorded = true')
end

local function write_flow(writer, path)
    line(writer, 'if not batch or not has_transitions(batch, plan.edges) then')
    for i, edge in ipairs(path.edges) do
        line(writer, format('call("HINCRBY", %s, %s, 1) progress.counted = %d', quote(writer.program.flow_key),
            quote(edge.flow), i))
    end
    line(writer, 'end')
end

local function write_reply(writer, path)
    local ids = quote(join_ids(path.edges))
    line(writer, format('if before then return { "OK", %s, "0", text, "", f[%d] } end', ids, writer.positions._state))
    line(writer, format('do return { "OK", %s, "0", text } end', ids))
end

-- Writes which jobs the instance still waits for, and which are withdrawn.
local function write_waiting(writer, path)
    local position = writer.positions._jobs
    path.has_jobs = position ~= nil or path.started[1] ~= nil
    line(writer, 'local awaited, gone')
    if not path.has_jobs or not position then line(writer, 'if ending then return nil end') end
    if position then
        line(writer, format('awaited = f[%d]', position))
        line(writer, 'if awaited ~= "" or ending then')
        line(writer, 'awaited, gone = leave_jobs(program, plan, awaited, ending)')
        line(writer, 'if not awaited then return nil end')
        line(writer, 'end')
    elseif path.has_jobs then
        line(writer, 'awaited = ""')
    end
end

-- Writes the end of a path: history entry, answer, all writes.
function chart_source.write_end(writer, path)
    local program, positions = writer.program, writer.positions
    local root = quote(program.root)
    if path.moved and program.arrivals and not has_fresh_leaf(path) then give_up(writer) end
    local plan = open_plan(writer, path)
    write_waiting(writer, path)
    line(writer, format('local version, stamp = number(f[%d] + 1), number(now)', positions._version))
    local set = step_compiler.write_changes(writer, path.changes)
    if path.timed then line(writer, 'local armed = encode_timers(timed)') end
    local answer = write_answer(writer, path)
    if program.history > 0 then write_entry(writer, path, set) end
    line(writer, 'local text = short and version or ' .. answer)
    line(writer, 'begin_writes(plan)')
    write_indexes(writer, path)
    local has_came = program.arrivals and path.moved
    local left = path.moved and write_places(writer, path, plan) or {}
    write_history(writer)
    write_flow(writer, path)
    if path.started[1] then line(writer, 'awaited = start_jobs(program, plan, id, awaited, now)') end
    if path.timed then line(writer, 'if timed.timers_changed then write_timers(timed) end') end
    if path.requested[1] then line(writer, 'enqueue_jobs(program, plan, id, now)') end
    line(writer, format('if is_logged(%s, clock) then log_step(%s, %s, id, version, %s, %s) end', root, root,
        quote(program.machine), quote(writer.event), quote(sub(chart_writes.quote_configuration(path.config), 2))))
    write_hash(writer, path)
    local last = has_came and { { quote(',"_came":') .. ' .. quote(came)' } } or {}
    if path.has_jobs then add(last, ',"_jobs":', { 'quote(awaited)' }) end
    add(last, '}')
    line(writer, format('if not short then text = text .. %s end', write_joined(last)))
    for _, key in ipairs(left) do line(writer, format('remove_place(%s, id)', quote(key))) end
    if program.history > 0 then
        line(writer, format('if long then call("LTRIM", %s .. id, %d, -1) end', quote(program.history_prefix), -program.history))
    end
    if path.requested[1] or path.has_jobs then line(writer, 'finish_jobs(program, gone, batch)') end
    line(writer, format('if batch then add_transitions(batch, %s, plan.edges, progress.counted > 0)', quote(program.flow_key)))
    line(writer, format('else ring_pulse(%s, clock) end', root))
    write_reply(writer, path)
end

-- Takes back what a step has written before one of its writes failed.
function chart_source.undo(program, id)
    local plan = progress.plan
    if not plan then return end
    progress.plan = false
    if progress.indexed then data_indexes.undo() end
    chart_writes.undo(progress.log)
    chart_jobs.undo(program.root)
    if progress.recorded then redis.pcall('RPOP', program.history_prefix .. id) end
    for i = 1, progress.counted do
        local flow = plan.edges[i].flow
        if redis.pcall('HINCRBY', program.flow_key, flow, -1) == 0 then redis.pcall('HDEL', program.flow_key, flow) end
    end
    for i = progress.placed, 1, -1 do
        local key, score = plan.places[i], progress.scores[i]
        if score then redis.pcall('ZADD', key, score, id) else redis.pcall('ZREM', key, id) end
    end
end

return chart_source
