-- needs: batches, data_indexes, history_entries, json, lua_source, step_jobs, step_plan, step_source, timers
-- Writes the source of a compiled step from its last action to its answer: what changes, the answer, and the writes of
-- `step_plan` as the plan prints them. `step`: what is known of the step since it is compiled. It has the fields of an
-- interpreted step's context that the plan reads, and
--   changes  of the data, by field and in order     records  texts of histories by field
--   armed    whether a timer is certainly left
local step_writes = {}

local format, concat = string.format, table.concat
local line, quote, give_up = step_source.line, lua_source.quote, step_source.give_up

local BOOKKEEPING = { _version = true, _state = true, _entered = true, _def = true, _created = true, _jobs = true, _actor = true,
    _timers = true, _came = true, _plans = true }
-- What a step keeps of `step` for its run.
local FACTS = { 'chart', 'moved', 'has_ended', 'origin', 'state', 'config', 'config_before', 'fresh', 'exited', 'edges',
    'started', 'effects', 'timed' }
local MIN_SHARE = 100 -- bytes that a field may have
local MAX_REVISIONS = 1000 -- whose next one is kept
local WHOLE_TEXTS = { _entered = true, _created = true }

-- Help at run time

-- Answers the jobs that the instance waits for after the step but for new ones, and those to withdraw; nil where it does not
-- wait for the one that ends.
local function leave_jobs(step, awaited, ending)
    if ending then awaited = step_jobs.remove(awaited, ending) end
    if not awaited or awaited == '' then return awaited end
    return step_jobs.leave(step, awaited, ending)
end

-- Writes the index of transitions. Answers the field for the hash.
local function change_arrivals(step, id, before)
    local ctx = { program = step.program, id = id, chart = step.chart, state = step.state, edges = step.edges,
        config = step.config, fresh = step.fresh, moved = true, raw = { _came = before } }
    data_indexes.write_arrivals(ctx)
    return ctx.raw._came
end

-- Revisions by the text of the one before. Those of most instances are few: what is written once is not read as a number again.
local following, following_count = {}, 0

local function follow(revision)
    local text = json.number(revision + 1)
    if following_count < MAX_REVISIONS then following[revision], following_count = text, following_count + 1 end
    return text
end

local NAMES = {
    { 'following', following }, { 'follow', follow }, { 'leave_jobs', leave_jobs }, { 'change_index', data_indexes.change },
    { 'change_actor', data_indexes.change_actor }, { 'change_arrivals', change_arrivals }, { 'encode_timers', timers.encode },
}
local HEADER = 'return function(f, id, key, payload, kept, actor, reason, now, clock, before, short, ending, batch, timed)\n'
    .. 'local stored = (ending or timed) and "" or actor\n' -- jobs and timers are no actors of an instance

-- Loads the source of a step. `refuse`: answers where no transition is taken; `names`: more names that the source uses.
function step_writes.load(writer, refuse, names)
    local own = { { 'program', writer.program }, { 'steps', writer.steps }, { 'refuse', refuse } }
    return lua_source.load(HEADER .. concat(writer.lines, '\n') .. '\nend', step_source.names, step_plan.names, NAMES, own, names)
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
step_writes.write_joined = write_joined

local function add(parts, ...)
    for i = 1, select('#', ...) do parts[#parts + 1] = (select(i, ...)) end
end

-- The value of a change as JSON for the history.
local function write_json(change)
    local field = change.field
    if change.literal then return field.plain and change.literal or json.quote(change.literal) end
    return { field.plain and change.after or 'quote(' .. change.after .. ')' }
end

-- The stored text of a change as JSON for the answer.
local function write_text(change)
    if change.literal then return json.quote(change.literal) end
    return { change.field.plain and '"\\"" .. ' .. change.after .. ' .. "\\""' or 'quote(' .. change.after .. ')' }
end

-- Writes the test of numbers that others may have written, where the answer has them: digits, or what else a number has.
local function write_number_test(writer, codes)
    if not codes[1] then return end
    local all = concat(codes, ' .. ')
    line(writer, format('if not short and not find(%s, "^%%d+$") and find(%s, "[^%%d.eE+-]") then return nil end', all, all))
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
    if not tests[1] then
        add(all, removed)
        return line(writer, 'local changes = ' .. write_joined(all))
    end
    line(writer, 'local changes')
    line(writer, 'if ' .. concat(tests, ' and ') .. ' then changes = ' .. write_joined(all))
    line(writer, 'else')
    line(writer, 'changes = ""')
    for _, pair in ipairs(each) do line(writer, format('if %s then changes = changes .. %s end', pair[1], pair[2])) end
    line(writer, 'end')
    if removed ~= '' then line(writer, 'changes = changes .. ' .. quote(removed)) end
end

-- The parts of the answer that are not data: how each is written after the step, false for one that is written last.
local function list_bookkeeping(writer, step)
    local found = { _version = { '"', { 'revision' }, '"' }, _def = { json.quote(writer.program.def) },
        _state = { json.quote(step.config.text) } }
    if step.moved then
        found._entered = { '"', { 'stamp' }, '"' }
        if writer.program.arrivals then found._came = false end
    end
    if step.timed then found._timers = false end
    if step.has_jobs then found._jobs = false end
    for name, text in pairs(step.records) do found[name] = { json.quote(text) } end
    if step.has_ended then found._done = { '"1"' } end
    return found
end

-- Writes the answer but for what `write_last` adds: the hash after the step as JSON. Texts that others may have written are
-- checked before anything is written: a number is digits, and text is quoted.
local function write_answer(writer, step)
    local parts, checked, program, positions = {}, {}, writer.program, writer.positions
    local kept = list_bookkeeping(writer, step)
    local function add_field(name, ...)
        add(parts, (#parts == 0 and '{' or ',') .. json.quote(name) .. ':', ...)
    end
    for i, name in ipairs(writer.shape.names) do
        local field, change, code = program.fields[name], step.changes.of[name], 'f[' .. i * 2 .. ']'
        if change then
            if not change.removed then add_field(name, write_text(change)) end
        elseif kept[name] then
            add_field(name, unpack(kept[name]))
        elseif name == '_actor' then
            add_field(name, { '(stored ~= "" and quote(stored) or quote(' .. code .. '))' })
        elseif field and (field.type == 'integer' or field.type == 'number') or WHOLE_TEXTS[name] then
            checked[#checked + 1] = code
            add_field(name, '"', { code }, '"')
        elseif kept[name] == nil then
            add_field(name, { 'quote(' .. code .. ')' })
        end
    end
    for _, change in ipairs(step.changes) do
        if not positions[change.field.name] and not change.removed then add_field(change.field.name, write_text(change)) end
    end
    for name, written in pairs(kept) do
        if written and not positions[name] then add_field(name, unpack(written)) end
    end
    if not positions._actor then
        add(parts, { '(stored ~= "" and ' .. quote(',"_actor":') .. ' .. quote(stored) or "")' })
    end
    if step.timed then add(parts, { '(armed and ' .. quote(',"_timers":') .. ' .. quote(armed) or "")' }) end
    write_number_test(writer, checked)
    return parts
end

-- Lists the end of the answer, which is only known when the step is written: the index of transitions and the jobs.
local function list_last(writer, step)
    local last = {}
    if writer.program.arrivals and step.moved then add(last, { quote(',"_came":') .. ' .. quote(came)' }) end
    if step.has_jobs then add(last, ',"_jobs":', { 'quote(awaited)' }) end
    return last
end

-- Parts of the plan

-- Answers the test whether a step by another actor changes the index of actors, and where the hash has the actor; nil where the
-- machine has no such index.
local function write_actor_test(writer)
    local position = writer.positions._actor
    for _, fact in ipairs(writer.program.facts or {}) do
        if fact.name == data_indexes.ACTOR then
            return position and format('stored ~= "" and stored ~= f[%d]', position) or 'stored ~= ""', position
        end
    end
end

local function write_indexes(writer, step)
    local found = {}
    for _, change in ipairs(step.changes) do
        if change.field.lookup then
            local set = format('change_index(program.fields[%s], id, %s, %s)', quote(change.field.name), change.before,
                change.removed and 'nil' or change.after)
            add(found, change.removed and set or format('if %s then %s end', change.test, set))
        end
    end
    local renamed, position = write_actor_test(writer)
    if renamed then
        local held = position and 'f[' .. position .. ']' or 'nil'
        add(found, format('if %s then change_actor(program, id, %s, stored) end', renamed, held))
    end
    if writer.program.arrivals and step.moved then
        local came = writer.positions._came
        add(found, format('local came = change_arrivals(step, id, %s)', came and 'f[' .. came .. ']' or 'nil'))
    end
    return concat(found, '\n')
end

-- Writes HSET, and with it the jobs that the instance waits for where they have changed.
local function write_hset(writer, step, set)
    local hash, position = concat(set, ', '), writer.positions._jobs
    local both = 'if stored == "" then call("HSET", %s) else call("HSET", %s, "_actor", stored) end'
    local awaits = hash .. ', "_jobs", awaited'
    if not step.has_jobs then return format(both, hash, hash) end
    if not position or step.started[1] then return format(both, awaits, awaits) end
    local changed = format('if ending or awaited ~= f[%d] then ', position)
    return changed .. format(both, awaits, awaits) .. ' else ' .. format(both, hash, hash) .. ' end'
end

local function write_instance(writer, step)
    local set, gone = { 'key', '"_version"', 'revision' }, {}
    if step.moved then
        add(set, '"_state"', quote(step.config.text), '"_entered"', 'stamp')
        if writer.program.arrivals then add(set, '"_came"', 'came') end
    end
    for name, text in pairs(step.records) do add(set, quote(name), quote(text)) end
    if step.has_ended then add(set, '"_done"', '"1"') end
    if step.armed then add(set, '"_timers"', 'armed') end
    for _, change in ipairs(step.changes) do
        if change.removed then
            add(gone, quote(change.field.name))
        else
            add(set, quote(change.field.name), change.after)
        end
    end
    local found = { write_hset(writer, step, set) }
    if gone[1] then add(found, format('call("HDEL", key, %s)', concat(gone, ', '))) end
    if step.timed and not step.armed then
        add(found, 'if timed.timers_changed then')
        add(found, 'if armed then call("HSET", key, "_timers", armed) else call("HDEL", key, "_timers") end')
        add(found, 'end')
    end
    return concat(found, '\n')
end

-- Writes which jobs the instance still waits for, and which are withdrawn.
local function write_waiting(writer, step)
    local position, leaves = writer.positions._jobs, step.moved or step.has_ended
    step.has_jobs = step.started[1] ~= nil or position ~= nil and (leaves or step.chart)
    line(writer, 'local awaited, gone')
    if not position or not step.has_jobs then
        line(writer, 'if ending then return nil end')
        if step.has_jobs then line(writer, 'awaited = ""') end
        return
    end
    line(writer, format('awaited = f[%d]', position))
    line(writer, 'if awaited == ending then awaited = ""')
    line(writer, leaves and 'elseif awaited ~= "" or ending then' or 'elseif ending then')
    line(writer, 'awaited, gone = leave_jobs(step, awaited, ending)')
    line(writer, 'if not awaited then return nil end')
    line(writer, 'end')
end

local function has_fresh_leaf(step)
    for _, leaf in ipairs(step.config.leaves) do
        if step.fresh[leaf] then return true end
    end
    return false
end

-- Keeps what the plan reads of a step for the run.
local function keep_facts(writer, step)
    local kept = { program = writer.program, kind = batches.find_kind(step.edges) }
    for _, name in ipairs(FACTS) do kept[name] = step[name] end
    writer.steps[#writer.steps + 1] = kept
    line(writer, format('local step = steps[%d]', #writer.steps))
    return kept
end

local function list_ids(edges)
    local found = {}
    for i, edge in ipairs(edges) do found[i] = edge.id end
    return concat(found, ' ')
end

-- Writes the end of a step: history entry, answer, all writes.
function step_writes.write_end(writer, step)
    local program, positions = writer.program, writer.positions
    if step.chart and step.moved and program.arrivals and not has_fresh_leaf(step) then give_up(writer) end
    local facts = keep_facts(writer, step)
    write_waiting(writer, step)
    line(writer, format('local revision = following[f[%d]] or follow(f[%d])', positions._version, positions._version))
    line(writer, 'local stamp = batch and batch.stamp or number(now)')
    line(writer, format('local created, entered, long = f[%d], f[%d]', positions._created, positions._entered))
    write_changes(writer, step.changes)
    if step.timed then line(writer, 'local armed = encode_timers(timed)') end
    local answer, last = write_answer(writer, step), list_last(writer, step)
    if not last[1] then add(answer, '}') end
    line(writer, 'local text = short and revision or ' .. write_joined(answer))
    local begin, rest = history_entries.describe(program, step.edges, writer.event, step.config.leaves)
    local given = { indexes = write_indexes(writer, step), instance = write_instance(writer, step),
        entry_begin = quote(begin), entry_rest = quote(rest), event = quote(writer.event) }
    for _, text in ipairs(step_plan.print(facts, given)) do line(writer, text) end
    if last[1] then
        add(last, '}')
        line(writer, format('if not short then text = text .. %s end', write_joined(last)))
    end
    facts.ended = { 'OK', list_ids(step.edges), '0', '' } -- never written
    local ids = quote(facts.ended[2])
    line(writer, format('if before then return { "OK", %s, "0", text, "", f[%d] } end', ids, positions._state))
    line(writer, 'if short and batch then return step.ended end')
    line(writer, format('do return { "OK", %s, "0", text } end', ids))
end

-- Tells whether instances of these fields may be stepped without the interpreter.
function step_writes.is_plain(program, shape)
    local kept, positions = {}, shape.positions
    for _, name in ipairs(program.histories) do kept[name] = true end
    for _, name in ipairs(shape.names) do
        if not BOOKKEEPING[name] and not kept[name] and not program.fields[name] then return false end
    end
    return positions._version and positions._entered and positions._created and not program.has_incomplete_index
        and program.share >= MIN_SHARE
end

return step_writes
