-- needs: actions, arithmetic, batches, builtins, commit, core, data_indexes, expressions, fields, history_entries, json
-- needs: refusals, step_jobs, step_log, step_source, values, work_budget
-- Compiles the step of one event in one state of a flat machine to a Lua function, for instances whose hash has the same
-- fields in the same order: constants, fields, keys and transitions are in place, and nothing is looked up. The function
-- reads from the values of HGETALL, and writes the same as `commit` does, in the same order. It answers nil, before it writes
-- anything, for whatever the interpreter has to do: a transition with other actions than `set` and `unset`, a guard or value
-- that fails, a job whose input is an expression. Where all guards are false it answers the refusal (`refusals`). A step may be
-- the end of a job (`ending`), and one of many in a call (`batch`).
local step_compiler = {}

local HISTORY_SLACK = 16 -- as in `commit`
local MAX_TRANSITIONS = 20
local LITERAL = { num = true, str = true, ['true'] = true, ['false'] = true }
local BOOKKEEPING = { _version = true, _state = true, _entered = true, _def = true, _created = true, _jobs = true, _actor = true,
    _plans = true }
local WHOLE_TEXTS = { _created = true }

local format, concat, sub = string.format, table.concat, string.sub
local line, quote = step_source.line, step_source.quote

-- How far the writes of a step have come; `undo` reads it. One is enough: the server runs one call at a time.
local progress = { stage = 0, indexed = false, from = nil, to = nil, flow = nil }
step_compiler.progress = progress
local INDEXED, MOVED, RECORDED, COUNTED = 1, 2, 3, 4

-- Names that the source uses, and the order in which it gets them.
local GIVEN = {
    { 'call', redis.call }, { 'tonumber', tonumber }, { 'type', type }, { 'find', string.find }, { 'sub', string.sub },
    { 'number', json.number }, { 'quote', json.quote }, { 'null', json.null }, { 'is_true', values.is_true },
    { 'is_equal', values.is_equal }, { 'is_less', values.is_less }, { 'contains', values.contains },
    { 'check_number', values.check_number },
    { 'get', values.get },
    { 'arithmetic', arithmetic }, { 'builtins', builtins }, { 'progress', progress }, { 'is_logged', step_log.is_on },
    { 'log_step', step_log.append }, { 'ring_pulse', commit.ring_pulse }, { 'change_index', data_indexes.change },
    { 'change_actor', data_indexes.change_actor }, { 'begin_indexes', data_indexes.begin },
    { 'has_move', batches.has_move }, { 'add_move', batches.add_move }, { 'has_transitions', batches.has_transitions },
    { 'add_transitions', batches.add_transitions }, { 'start_jobs', step_jobs.start }, { 'ring_jobs', step_jobs.ring },
    { 'withdraw_jobs', step_jobs.withdraw }, { 'count_spent', work_budget.count_spent },
}
local names, given = {}, {}
for i, pair in ipairs(GIVEN) do names[i], given[i] = pair[1], pair[2] end
local HEADER = 'local ' .. concat(names, ', ') .. ', program, all_edges, refuse = ...\n'
    .. 'return function(f, id, key, payload, kept, actor, reason, now, clock, before, short, ending, batch)\n'
    .. 'local stored = ending and "" or actor\n' -- a job is no actor of the instance'

-- Actions

-- Answers the change of a field, a new one at the end of the list. A field that was changed before must have another value by
-- then: only so its place in the order of changes is known.
local function find_change(writer, changes, field)
    local change, position = changes.of[field.name], writer.positions[field.name]
    if not change then
        change = { field = field, before = position and 'f[' .. position .. ']' or 'nil', index = #changes + 1 }
        changes[#changes + 1], changes.of[field.name] = change, change
        step_source.check_size(writer, changes)
    elseif not change.certain then
        if not change.removed then
            line(writer, format('if %s == %s then return nil end', change.after, change.before))
        end
        change.certain = true
    end
    change.removed, change.literal = nil, nil
    return change
end

-- Writes a `set` or `unset`; notes it in `changes`, by field and in order.
local function write_action(writer, action, changes)
    local form, field, after, literal = action[1], writer.program.fields[action[2]], nil, nil
    if form ~= 'set' and form ~= 'unset' or not field then return step_source.give_up(writer) end
    if form == 'unset' then
        step_source.forget(writer, field)
        if not writer.positions[field.name] and not changes.of[field.name] then return end
    elseif LITERAL[action[3][1]] then
        local value = action[3][1] == 'true' or action[3][1] ~= 'false' and action[3][2]
        local ok, raw = pcall(field.encode, value)
        if not ok or #raw > writer.program.share then return step_source.give_up(writer) end
        after, literal = step_source.write_literal(writer, field, raw), raw
    else
        after = step_source.write_field(writer, field, action[3])
        if writer.explains then writer.work = writer.work + expressions.count_work(action[3], writer.program) end
    end
    local change = find_change(writer, changes, field)
    change.after, change.literal, change.removed = after or change.after, literal, form == 'unset'
end
step_compiler.write_action = write_action

local function write_actions(writer, list, changes)
    writer.work = writer.work + actions.count_work(list)
    for _, action in ipairs(list or {}) do write_action(writer, action, changes) end
end

-- Texts

-- Joins constants and code to one expression, '""' for none. A part is a text to quote, or {code}.
local function write_joined(parts)
    local found, constant = {}, ''
    for _, part in ipairs(parts) do
        if type(part) == 'string' then
            constant = constant .. part
        else
            if constant ~= '' then found[#found + 1] = quote(constant) end
            found[#found + 1], constant = part[1], ''
        end
    end
    if constant ~= '' or not found[1] then found[#found + 1] = quote(constant) end
    return concat(found, ' .. ')
end

local function add(parts, ...)
    for i = 1, select('#', ...) do parts[#parts + 1] = (select(i, ...)) end
end

-- The value of a change as JSON for the history.
local function write_json(change)
    local field = change.field
    if change.literal then return field.plain and change.literal or json.quote(change.literal) end
    return { field.plain and change.after or 'quote(' .. change.after .. ')' }
end

-- Writes the test of numbers that others may have written: digits, or what else a number has.
local function write_number_test(writer, codes)
    if not codes[1] then return end
    local all = concat(codes, ' .. ')
    line(writer, format('if not find(%s, "^%%d+$") and find(%s, "[^%%d.eE+-]") then return nil end', all, all))
end

-- Writes the changed data as the history holds it.
local function write_changes(writer, changes)
    local all, each, tests, gone = {}, {}, {}, {}
    for _, change in ipairs(changes) do
        if change.removed then
            gone[#gone + 1] = change.field.unset_mark
        else
            change.test = 'true'
            if not change.certain and change.before ~= 'nil' then
                change.test = 'c' .. change.index
                line(writer, format('local %s = %s ~= %s', change.test, change.after, change.before))
                tests[#tests + 1] = change.test
            end
            add(all, change.field.set_mark, write_json(change))
            each[#each + 1] = { change.test, write_joined({ change.field.set_mark, write_json(change) }) }
        end
    end
    local removed = concat(gone)
    if not each[1] then return { removed } end
    if not tests[1] then
        line(writer, 'local set = ' .. write_joined(all))
        return { { 'set' }, removed }
    end
    line(writer, 'local set')
    line(writer, 'if ' .. concat(tests, ' and ') .. ' then set = ' .. write_joined(all))
    line(writer, 'else')
    line(writer, 'set = ""')
    for _, pair in ipairs(each) do line(writer, format('if %s then set = set .. %s end', pair[1], pair[2])) end
    line(writer, 'end')
    return { { 'set' }, removed }
end

-- Writes the answer: the hash after the step as JSON. Texts that others may have written are checked before anything is
-- written: a number is digits, and text is quoted. Where jobs are started the answer stays open: their ids come last.
local function write_answer(writer, shape, changes, moved, to, starts)
    local parts, checked, program = {}, {}, writer.program
    local function add_field(name, ...)
        add(parts, (#parts == 0 and '{' or ',') .. json.quote(name) .. ':', ...)
    end
    for i, name in ipairs(shape.names) do
        local field, change, code = program.fields[name], changes.of[name], 'f[' .. i * 2 .. ']'
        if change then
            if not change.removed then
                local plain = change.field.plain
                if change.literal then
                    add_field(name, json.quote(change.literal))
                elseif plain then
                    add_field(name, '"', { change.after }, '"')
                else
                    add_field(name, { 'quote(' .. change.after .. ')' })
                end
            end
        elseif name == '_version' then
            add_field(name, '"', { 'version' }, '"')
        elseif name == '_state' then
            add_field(name, json.quote(to.name))
        elseif name == '_def' then
            add_field(name, json.quote(program.def))
        elseif name == '_entered' and moved then
            add_field(name, '"', { 'stamp' }, '"')
        elseif name == '_actor' then
            add_field(name, { '(stored ~= "" and quote(stored) or quote(' .. code .. '))' })
        elseif name == '_jobs' and moved then
            if not starts then add_field(name, '""') end
        elseif field and (field.type == 'integer' or field.type == 'number') or name == '_entered' or WHOLE_TEXTS[name] then
            checked[#checked + 1] = code
            add_field(name, '"', { code }, '"')
        else
            add_field(name, { 'quote(' .. code .. ')' })
        end
    end
    for _, change in ipairs(changes) do
        local name = change.field.name
        if not writer.positions[name] and not change.removed then
            if change.literal then
                add_field(name, json.quote(change.literal))
            elseif change.field.plain then
                add_field(name, '"', { change.after }, '"')
            else
                add_field(name, { 'quote(' .. change.after .. ')' })
            end
        end
    end
    if not writer.positions._actor then
        add(parts, { '(stored ~= "" and ' .. quote(',"_actor":') .. ' .. quote(stored) or "")' })
    end
    if not starts then add(parts, '}') end
    write_number_test(writer, checked)
    return write_joined(parts)
end

-- Writes

-- Answers the test whether a step by another actor changes the index of actors; nil where the machine has none.
local function write_actor_test(writer)
    local position = writer.positions._actor
    for _, fact in ipairs(writer.program.facts or {}) do
        if fact.name == data_indexes.ACTOR then
            return position and format('stored ~= "" and stored ~= f[%d]', position) or 'stored ~= ""', position
        end
    end
end

-- Writes the changes of the indexes; `begin`: the code that is run before the first of them.
local function write_indexes(writer, changes, begin)
    local tests, certain = {}, false
    for _, change in ipairs(changes) do
        if change.field.lookup and change.removed then certain = true end
        if change.field.lookup and not change.removed then tests[#tests + 1] = change.test end
    end
    local renamed, position = write_actor_test(writer)
    tests[#tests + 1] = renamed
    if certain then
        line(writer, begin)
    elseif tests[1] then
        line(writer, format('if %s then %s end', concat(tests, ' or '), begin))
    end
    for _, change in ipairs(changes) do
        if change.field.lookup then
            local set = format('change_index(program.fields[%s], id, %s, %s)', quote(change.field.name), change.before,
                change.removed and 'nil' or change.after)
            line(writer, change.removed and set or format('if %s then %s end', change.test, set))
        end
    end
    if renamed then
        local held = position and 'f[' .. position .. ']' or 'nil'
        line(writer, format('if %s then change_actor(program, id, %s, stored) end', renamed, held))
    end
end

local function write_hash(writer, changes, moved, to, starts)
    local set, gone = { 'key', '"_version"', 'version' }, {}
    if moved then add(set, '"_state"', quote(to.name), '"_entered"', 'stamp') end
    for _, change in ipairs(changes) do
        if change.removed then
            gone[#gone + 1] = quote(change.field.name)
        else
            add(set, quote(change.field.name), change.after)
        end
    end
    if starts then add(set, '"_jobs"', 'awaited') end
    local all, awaits = concat(set, ', '), moved and not starts and writer.positions._jobs
    local both = 'if stored == "" then call("HSET", %s) else call("HSET", %s, "_actor", stored) end'
    if awaits then
        line(writer, format('if f[%d] ~= "" then', awaits))
        line(writer, format(both, all .. ', "_jobs", ""', all .. ', "_jobs", ""'))
        line(writer, 'else')
    end
    line(writer, format(both, all, all))
    if awaits then line(writer, 'end') end
    if gone[1] then line(writer, format('call("HDEL", key, %s)', concat(gone, ', '))) end
end

-- Writes the test that the step ends the only job that the instance waits for, where it ends one.
local function write_ending(writer, moved)
    local awaits = moved and writer.positions._jobs
    local other = awaits and format('ending and f[%d] ~= ending', awaits) or 'ending'
    line(writer, format('if %s then return nil end', other))
end

-- Writes the move between the indexes of two states. In a batch only the first of its kind happens at once.
local function write_move(writer, from, to)
    line(writer, 'progress.to = nil')
    line(writer, format('if not batch or not has_move(batch, %s, %s) then', quote(from.index_key), quote(to.index_key)))
    line(writer, format('progress.from, progress.to, progress.stage = %s, %s, %d', quote(from.index_key),
        quote(to.index_key), MOVED))
    line(writer, format('call("ZADD", %s, stamp, id)', quote(to.index_key)))
    if from ~= to then line(writer, format('call("ZREM", %s, id)', quote(from.index_key))) end
    line(writer, 'end')
end

-- Writes what follows the writes of the instance: bells, withdrawn jobs, the pulse.
local function write_notices(writer, moved, from, to, starts)
    local program = writer.program
    local root = quote(program.root)
    if starts then line(writer, format('ring_jobs(%s, program.states[%d].invokes, batch)', root, to.index)) end
    if moved and writer.positions._jobs then
        local awaited = writer.positions._jobs
        line(writer, format('if not ending and f[%d] ~= "" then withdraw_jobs(%s, f[%d]) end', awaited, root, awaited))
    end
    line(writer, 'if batch then')
    if moved then
        line(writer, format('add_move(batch, %s, %s, id, progress.to ~= nil)', quote(from.index_key), quote(to.index_key)))
    end
    line(writer, format('add_transitions(batch, %s, edges, progress.flow ~= nil)', quote(program.flow_key)))
    line(writer, format('else ring_pulse(%s, clock) end', root))
end

-- Writes the answer of a step that is only explained: the number of the transition, what holds after it as JSON, and the
-- units of work of its actions.
local function write_outcome(writer, transition, changes, to)
    local data = {}
    for _, field in ipairs(writer.program.ordered) do
        local change, position = changes.of[field.name], writer.positions[field.name]
        local code = position and 'f[' .. position .. ']'
        if change then code = not change.removed and change.after end
        if code then add(data, field.quoted, { field.plain and code or 'quote(' .. code .. ')' }) end
    end
    if data[1] then data[1] = sub(data[1], 2) end
    local parts = { '{"configuration":[' .. json.quote(to.name) .. '],"data":{' }
    for _, part in ipairs(data) do parts[#parts + 1] = part end
    parts[#parts + 1] = '},"transitions":' .. json.quote(transition.id) .. '}'
    line(writer, format('local spent = count_spent() + %d', writer.work))
    line(writer, format('do return %d, %s, spent end', writer.number, write_joined(parts)))
end

-- Writes the step of one transition, from its actions to its answer.
local function write_transition(writer, shape, transition)
    local program = writer.program
    local from = program.states[writer.state]
    local to = transition.target and program.states[transition.target] or from
    local moved = transition.target ~= nil and (transition.target ~= writer.state or transition.reenter or false)
    if to.always[1] or moved and not step_jobs.are_plain(to.invokes) or transition.delay then step_source.give_up(writer) end
    local changes, starts = { of = {} }, moved and to.invokes[1] ~= nil
    step_source.check_size(writer, changes)
    writer.work = writer.selection
    if not writer.explains then write_ending(writer, moved) end
    if moved then write_actions(writer, from.exit_actions, changes) end
    write_actions(writer, transition.list, changes)
    if moved then write_actions(writer, to.entry_actions, changes) end
    if writer.explains then return write_outcome(writer, transition, changes, to) end
    line(writer, format('local version = number(f[%d] + 1)', writer.positions._version))
    line(writer, 'local stamp = batch and batch.stamp or number(now)')
    local set = write_changes(writer, changes)
    local answer = write_answer(writer, shape, changes, moved, to, starts)
    if program.history > 0 then
        local begin, rest = history_entries.describe(program, { transition }, writer.event, { to.index })
        local entry = { begin, { 'version' }, '\t', { format('now - f[%d]', writer.positions._created) }, rest,
            { '(actor == "" and "" or "\\t@" .. quote(actor))' }, { '(reason == "" and "" or "\\t?" .. quote(reason))' },
            { '(kept == "0" and "" or "\\t" .. kept)' }, unpack(set) }
        line(writer, 'local entry = ' .. write_joined(entry)) -- as `history_entries.pack`
    end
    line(writer, 'local text = short and version or ' .. answer)
    write_indexes(writer, changes, 'begin_indexes() progress.indexed, progress.stage = true, ' .. INDEXED)
    if moved then write_move(writer, from, to) else line(writer, 'progress.to = nil') end
    if program.history > 0 then
        line(writer, format('local long = call("RPUSH", %s .. id, entry) > %d', quote(program.history_prefix),
            program.history + HISTORY_SLACK))
        line(writer, 'progress.stage = ' .. RECORDED)
    end
    writer.edges[#writer.edges + 1] = { transition }
    line(writer, format('local edges = all_edges[%d]', #writer.edges))
    line(writer, 'progress.flow = nil')
    line(writer, 'if not batch or not has_transitions(batch, edges) then')
    line(writer, format('call("HINCRBY", %s, %s, 1)', quote(program.flow_key), quote(transition.flow)))
    line(writer, format('progress.flow = %s', quote(transition.flow)))
    line(writer, 'end')
    line(writer, 'progress.stage = ' .. COUNTED)
    if starts then
        line(writer, format('local awaited = start_jobs(%s, id, program.states[%d].invokes, now)', quote(program.root), to.index))
    end
    line(writer, format('if is_logged(%s, clock) then log_step(%s, %s, id, version, %s, %s) end', quote(program.root),
        quote(program.root), quote(program.machine), quote(writer.event), quote(sub(to.quoted, 2))))
    write_hash(writer, changes, moved, to, starts)
    if starts then line(writer, 'if not short then text = text .. ",\\"_jobs\\":" .. quote(awaited) .. "}" end') end
    if program.history > 0 then
        line(writer, format('if long then call("LTRIM", %s .. id, %d, -1) end', quote(program.history_prefix), -program.history))
    end
    write_notices(writer, moved, from, to, starts)
    line(writer, format('if before then return { "OK", %s, "0", text, "", f[%d] } end', quote(transition.id),
        writer.positions._state))
    line(writer, format('return { "OK", %s, "0", text }', quote(transition.id)))
end

-- Runs `write`; where it gives up, what it has written is dropped for a line that leaves the step to the interpreter.
local function try_writing(writer, write, ...)
    local before, known, payload, seconds = #writer.lines, {}, {}, writer.seconds
    for name, value in pairs(writer.known) do known[name] = value end
    for name, value in pairs(writer.payload) do payload[name] = value end
    local ok, found = pcall(write, writer, ...)
    if ok then return found or true, known, payload, seconds end
    if not writer.gave_up then error(found, 0) end
    writer.gave_up = false
    for i = #writer.lines, before + 1, -1 do writer.lines[i] = nil end
    line(writer, 'do return nil end')
    return nil, known, payload, seconds
end

local function write_guard(writer, transition)
    return transition.tree and step_source.write_test(step_source.write(transition.tree, writer)) or 'true'
end

-- Writes the transitions in order. Behind a guard that is not compiled the interpreter decides. Answers how many are
-- compiled.
local function write_step(writer, shape, transitions)
    local compiled = 0
    for i, transition in ipairs(transitions) do
        local test = try_writing(writer, write_guard, transition)
        if not test then break end
        line(writer, 'if ' .. test .. ' then')
        writer.number = i
        if writer.explains then
            writer.selection = writer.selection + expressions.count_work(transition.tree, writer.program)
        end
        local written, known, payload, seconds = try_writing(writer, write_transition, shape, transition)
        if written then compiled = compiled + 1 end
        line(writer, 'end')
        writer.known, writer.payload, writer.seconds = known, payload, seconds
        if not transition.tree then return compiled end
        if i == #transitions then
            local explained = format('do return 0, nil, count_spent() + %d end', writer.selection)
            line(writer, writer.explains and explained or 'if not ending then return refuse(f, payload, now) end')
        end
    end
    return compiled
end

-- Tells whether instances of these fields may be stepped without the interpreter.
local function is_plain(program, shape)
    for _, name in ipairs(shape.names) do
        if not BOOKKEEPING[name] and not program.fields[name] then return false end
    end
    return shape.positions._version and shape.positions._entered and shape.positions._created and true or false
end

-- Answers where an instance stands; nil where the interpreter has to look.
local function find_place(program, shape, state)
    local index = program.index[state]
    return program.flat and index and is_plain(program, shape) and { state = index } or nil
end

local function build(program, shape, place, event, explains)
    if program.has_incomplete_index or program.arrivals or program.share < 100 then return false end
    local transitions = program.states[place.state].listening(event)
    if #transitions > MAX_TRANSITIONS then return false end
    local writer = step_source.open(program, shape.positions, place.state)
    writer.event, writer.edges, writer.explains, writer.selection = event, {}, explains, 0
    if write_step(writer, shape, transitions) == 0 then return false end
    local arguments = { unpack(given) }
    local at = #arguments
    arguments[at + 1], arguments[at + 2] = program, writer.edges
    arguments[at + 3] = not explains and refusals.make(program, shape, place, event)
    return step_source.load(HEADER .. concat(writer.lines, '\n') .. '\nend', unpack(arguments))
end

-- Compiles the step of an event in a state for the fields of `shape`: {names, positions}. Answers the function, or false.
function step_compiler.compile(program, shape, state, event)
    local place = find_place(program, shape, state)
    if not place then return false end
    if refusals.is_without_candidates(program, place, event) then return refusals.make_step(program, shape, place, event) end
    if program.states[place.state].final or not program.states[place.state].listening(event)[1] then return false end
    return build(program, shape, place, event)
end

-- Compiles the explanation of the same step, which writes nothing: a function as of `refusals.make_explained_step`, or false.
function step_compiler.explain(program, shape, state, event)
    local place = find_place(program, shape, state)
    if not place then return false end
    if refusals.is_without_candidates(program, place, event) then
        return refusals.make_explained_step(program, shape, place, event, nil, 0)
    end
    local choose = build(program, shape, place, event, true)
    local work = core.count_selection(program.states[place.state].listening(event))
    return choose and refusals.make_explained_step(program, shape, place, event, choose, work)
end

-- Takes back what a step has written before one of its writes failed.
function step_compiler.undo(program, id, entered)
    local stage = progress.stage
    if stage == 0 then return end
    if progress.indexed then data_indexes.undo() end
    if progress.to and stage >= MOVED then
        if progress.to ~= progress.from then redis.pcall('ZREM', progress.to, id) end
        redis.pcall('ZADD', progress.from, entered, id)
    end
    if stage >= RECORDED and program.history > 0 then redis.pcall('RPOP', program.history_prefix .. id) end
    if stage >= COUNTED then step_jobs.undo(program.root) end
    if stage >= COUNTED and progress.flow and redis.pcall('HINCRBY', program.flow_key, progress.flow, -1) == 0 then
        redis.pcall('HDEL', program.flow_key, progress.flow)
    end
end

step_compiler.add, step_compiler.write_joined, step_compiler.write_changes = add, write_joined, write_changes
step_compiler.write_number_test, step_compiler.write_indexes = write_number_test, write_indexes

return step_compiler
