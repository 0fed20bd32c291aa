-- needs: json, keys
-- Entries of the history, packed in the list of an instance and unpacked where they are read. A packed entry has parts
-- that tabs separate, for example `1:t2 3 102 {"token":"A"} 2=5`:
--   <version of the definition>:<transition> · revision · ms since the instance was created
-- and then, in this order, what the definition does not tell of that transition, and what is not empty:
--   !"event" · ><numbers of the states> · @"actor" · ?"reason" · {payload} · 0=[waited,retried,ran,attempt,"worker"] of the job
--   that ended · <number of a data field>=<value> · -<number>
-- Values are JSON, so none holds a tab; a field after `-` was unset. Numbers count from 1 in the order of the definition.
-- Entries of earlier releases, and those of migrations, are JSON arrays as `unpack_one` answers them, and stay so.
local history_entries = {}

local CREATE = '(create)'
local QUOTED_CREATE = json.quote(CREATE)
local MAX_LEGENDS = 256
local match, gmatch, find, byte, sub, concat = string.match, string.gmatch, string.find, string.byte, string.sub, table.concat
local max, write = math.max, json.number

local legends, legend_count = {}, 0

-- Answers the event that a transition tells of itself: the only one it is taken by. Works on a transition of a program and on
-- a compiled one, like the next.
local function get_event(transition)
    local events = transition.events
    return events and not events[2] and events[1] or nil
end

-- Answers the state that a transition tells of itself.
local function get_state(transition, source)
    if transition.target then return transition.target end
    return not (transition.targets and transition.targets[1]) and source or nil
end

-- Answers the two constant parts of an entry, before the revision and behind the time. `leaves`: numbers of the states.
function history_entries.describe(program, edges, event, leaves)
    local first, last = edges[1], edges[#edges]
    local begin, rest = first and first.flow or program.version .. ':', ''
    for i = 2, #edges do begin = begin .. ' ' .. edges[i].id end
    local expected, state
    if first then
        expected, state = get_event(first), get_state(last, last.source)
    else
        expected, state = CREATE, program.initial.targets[1]
    end
    if event ~= expected then rest = '\t!' .. json.quote(event) end
    if leaves[2] or leaves[1] ~= state then rest = rest .. '\t>' .. concat(leaves, ' ') end
    return begin .. '\t', rest
end

-- The entry of a step, for the plan of its writes: '0' is no payload; `by`, `mark`: the actor, and what stands before the
-- payload; `changes`: the changed data, packed. It is one chain, because each text that is made costs time.
history_entries.SOURCE = '${given.entry_begin} .. revision .. "\\t" .. number(now - created) .. ${given.entry_rest} .. by'
    .. ' .. (reason == "" and "" or "\\t?" .. quote(reason)) .. mark .. (kept == "0" and "" or kept) .. changes'

-- The same for `by` and `mark`. `ending`: the job whose end a compiled step is. It acts without a reason, and `kept` then begins
-- behind its id, see `add_job`.
history_entries.MARKS = '(ending and "\\t@\\"job " or actor == "" and "" or "\\t@" .. quote(actor)),'
    .. ' (ending or kept == "0" and "" or "\\t")'

-- Describes how a job went, behind how long it waited. The row keeps that: it may stand for a job that was taken in the same
-- call, and ends in the same call.
local function describe_run(row, now)
    local run = row.run
    if run and run.now == now then return run end
    local taken, started = row.taken, row.started or row.taken
    local text = ',' .. max(0, taken - started) .. ',' .. max(0, now - taken) .. ',' .. tonumber(row.attempt) .. ','
        .. json.quote(row.worker) .. ']' -- may throw
    row.run = { now = now, text = text, first = tonumber(started) }
    return row.run
end

-- Adds to a payload, as JSON for the history, how the job went whose end the step is: ms until it was first taken, from then
-- until it was last taken, and since; attempt and worker. Nothing of one that no worker holds. `has_actor`: the entry names the
-- job as its actor, and the answer begins with the end of that text. Without a payload it is kept for jobs made at the same time.
function history_entries.add_job(kept, row, now, has_actor)
    local run, is_bare = row.run, kept == '0' and has_actor
    if is_bare and run and run.now == now and run.created == row.created then return run.bare end
    local opening = is_bare and '"' or has_actor and '"\t' .. kept or kept
    if not (run and run.now == now and row.created) then
        if row.place ~= 'leased' or not (row.created and row.taken and row.attempt and row.worker) then return opening end
        run = describe_run(row, now)
    end
    local text = (opening == '0' and '0=[' or opening .. '\t0=[') .. write(max(0, run.first - row.created)) .. run.text
    if is_bare then run.bare, run.created = text, row.created end
    return text
end

local function read_legend(program)
    local found = { transitions = {}, names = {}, fields = {}, initial = program.initial }
    if type(found.initial) == 'table' then found.initial = found.initial.targets[1] end
    for index, state in ipairs(program.states) do
        found.names[index] = json.quote(state.name)
        for _, list in ipairs({ state.transitions or {}, state.always or {} }) do
            for _, transition in ipairs(list) do
                local event = get_event(transition)
                found.transitions[transition.id] = { event = event and json.quote(event),
                    state = get_state(transition, index), quoted = json.quote(transition.id) }
            end
        end
    end
    for i, field in ipairs(program.data or {}) do found.fields[i] = json.quote(field.name) end
    return found
end

-- Answers what entries need of a version: events and states by transition, names of states and fields by number. It is the
-- same in all partitions. nil where the version is not published here.
local function load_legend(root, version)
    local key = keys.definition(root, version)
    local digest = redis.call('HGET', key, 'digest')
    if not digest then return nil end
    local name = version .. ':' .. digest
    local found = legends[name]
    if found then return found end
    local program = redis.call('HGET', key, 'program')
    if not program then return nil end
    found = read_legend(cjson.decode(program))
    if legend_count >= MAX_LEGENDS then legends, legend_count = {}, 0 end
    legends[name], legend_count = found, legend_count + 1
    return found
end

-- Names a state or a field of a version that is gone.
local function name(list, number)
    return list and list[tonumber(number)] or json.quote('?' .. number)
end

local function name_states(legend, numbers)
    local found = {}
    for number in gmatch(numbers, '%d+') do found[#found + 1] = name(legend and legend.names, number) end
    return found[2] and '[' .. concat(found, ',') .. ']' or found[1] or '""'
end

-- Reads the parts behind the time into `entry`. Answers false for a part that no entry has.
local function read_parts(entry, legend, text)
    local set, gone = '', ''
    for part in gmatch(text, '[^\t]+') do
        local mark = byte(part)
        if mark == 123 then entry.payload = part -- {
        elseif mark == 33 then entry.event = sub(part, 2) -- !
        elseif mark == 62 then entry.state = name_states(legend, part) -- >
        elseif mark == 64 then entry.actor = sub(part, 2) -- @
        elseif mark == 63 then entry.reason = sub(part, 2) -- ?
        elseif mark == 45 then gone = gone .. ',' .. name(legend and legend.fields, sub(part, 2)) -- -
        else
            local at = find(part, '=', 2, true)
            if mark < 48 or mark > 57 or not at then return false end
            if mark == 48 then
                entry.job = ',' .. sub(part, at + 1)
            else
                set = set .. ',' .. name(legend and legend.fields, sub(part, 1, at - 1)) .. ':' .. sub(part, at + 1)
            end
        end
    end
    entry.set = set ~= '' and '{' .. sub(set, 2) .. '}' or '0'
    entry.gone = (gone ~= '' or entry.job) and ',[' .. sub(gone, 2) .. ']' or ''
    return true
end

-- Answers an entry as JSON: [revision, ms, event, state, transitions, actor, reason, payload, set, unset, job]; 0 for none, and
-- the last two only where there are any. What is no packed entry is answered as it is.
local function unpack_one(text, created, get_legend)
    local version, taken, revision, age, rest = match(text, '^(%d+):([^\t]*)\t(%d+)\t(%-?[%d.e+-]+)(.*)$')
    if not version or not tonumber(age) then return text end
    local legend = get_legend(version)
    local entry, quoted = { event = '""', state = '""', actor = '0', reason = '0', payload = '0' }, nil
    if taken == '' then
        entry.event, quoted = QUOTED_CREATE, '""'
        entry.state = legend and legend.names[legend.initial] or entry.state
    elseif legend then
        local first = legend.transitions[taken]
        local last = first
        if first then
            quoted = first.quoted
        else
            first, last = legend.transitions[match(taken, '^[^ ]+')], legend.transitions[match(taken, '[^ ]+$')]
        end
        entry.event = first and first.event or entry.event
        entry.state = last and legend.names[last.state] or entry.state
    end
    if rest ~= '' and not read_parts(entry, legend, rest) then return text end
    return '[' .. revision .. ',' .. json.number(created + age) .. ',' .. entry.event .. ',' .. entry.state .. ','
        .. (quoted or json.quote(taken)) .. ',' .. entry.actor .. ',' .. entry.reason .. ',' .. entry.payload .. ','
        .. (entry.set or '0') .. (entry.gone or '') .. (entry.job or '') .. ']'
end

-- Tells whether an entry is packed: all others begin with a bracket.
function history_entries.is_packed(text)
    return find(text, '^%d+:') ~= nil
end

-- Answers entries as JSON. `created` is text of the instance's hash.
function history_entries.unpack_all(root, created, entries)
    local known, found = {}, {}
    local function get_legend(version)
        if known[version] == nil then known[version] = load_legend(root, version) or false end
        return known[version] or nil
    end
    for i, text in ipairs(entries) do found[i] = unpack_one(text, tonumber(created) or 0, get_legend) end
    return found
end

return history_entries
