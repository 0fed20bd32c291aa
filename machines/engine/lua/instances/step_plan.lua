-- needs: batches, chart_writes, data_indexes, history_entries, json, keys, lua_source, partition_log, pulse, step_jobs
-- needs: step_log, version_counters
-- The plan of a step's writes: which keys, by which commands, in which order, under which condition, and what undoes each.
-- `commit` carries the plan out for interpreted steps; compiled steps have it printed with what is known of them.
--
-- A write has
--   when    a Lua expression, without which it is left out
--   each    a Lua expression for a list: the write is repeated for each `item`, number `index`
--   source  the commands, in Lua
--   before  what stands once before the items of `each`
--   unless  a local without which it is done: the end of a batch does it for steps of a kind that has begun
--   undo    what takes the write back when a later one fails. It is called once `source` was run, or once `before` was.
-- `${...}`, `when` and `each` read `step`: the context of an interpreted step, or what is known of a compiled one. For compiled
-- steps they are evaluated when the step is compiled, and `${...}` becomes a literal. The rest is the same for both, and reads
-- `step` and the locals that `PARAMETERS` and `LOCALS` name. `${given...}` is source that differs: how the data is collected.
local step_plan = {}

local HISTORY_SLACK = 16 -- entries beyond those kept, before the oldest are cut off
local call, pcall_redis = redis.call, redis.pcall
local concat, find, format, gsub, sub = table.concat, string.find, string.format, string.gsub, string.sub

-- The progress of the current step, for an undo. One is enough: the server runs one call at a time. `stage`: the number of the
-- latest write of the plan that has begun, or `WRITTEN`: from then on nothing is undone.
local WRITTEN = -1
local progress = { step = nil, id = nil, entered = nil, stage = 0, kind = nil, placed = 0, scores = {}, counted = 0,
    timers_log = nil, messages_log = nil }

-- Answers the index key of a state.
local function find_index(step, state)
    return step.program.states[state].index_key
end

-- Answers the index that a step of a flat machine removes the instance from; false for none.
local function find_origin(step)
    return step.moved and not step.chart and find_index(step, step.origin)
end

-- The same of the index that it adds the instance to.
local function find_place(step)
    return step.moved and not step.chart and find_index(step, step.state)
end

-- Lists the indexes of the leaves that a chart's step entered, and whether the instance was in each before.
local function list_entered(step)
    local found, was = {}, step.config_before
    for _, leaf in ipairs(step.config.leaves) do
        if step.fresh[leaf] then
            found[#found + 1] = { key = find_index(step, leaf), was_in = was and was.active[leaf] or false }
        end
    end
    return found
end

-- Lists the indexes of the leaves that a chart's step left.
local function list_left(step)
    local found = {}
    for _, leaf in ipairs(step.config_before and step.config_before.leaves or {}) do
        if not step.config.active[leaf] then found[#found + 1] = find_index(step, leaf) end
    end
    return found
end

-- Quotes the states where a step ends, for the log of steps.
local function quote_place(step)
    return sub(chart_writes.quote_configuration(step.config), 2)
end

function step_plan.log_effects(step, id, revision)
    for _, effect in ipairs(step.effects) do
        if effect.kind ~= 'enqueue' then
            partition_log.append(step.program.root, 'kind', effect.kind, 'name', effect.name, 'data', effect.text,
                'machine', step.program.machine, 'instance', id, 'version', revision)
        end
    end
end

local PARAMETERS =
    'step, id, key, batch, now, clock, revision, stamp, created, entered, event, actor, reason, kept, awaited, gone'
local LOCALS = 'local timed, ending, long = step, nil, false'

step_plan.writes = {
    { name = 'what an undo needs', source = 'progress.step, progress.id, progress.entered = step, id, entered' },
    {
        name = 'the steps of a batch',
        source = [[local kind = batch and batch[${step.chart and "chart_kinds" or "kinds"}][step.kind or find_kind(step.edges)]
            progress.kind = kind]],
    },
    {
        name = 'indexes of data and facts',
        when = 'step.program.indexed',
        before = 'begin_indexes()',
        source = '${given.indexes}',
        undo = data_indexes.undo,
    },
    { name = 'texts for the hash and the history', source = '${given.texts}' },
    {
        name = 'index of the state entered',
        when = 'step.moved and not step.chart',
        unless = 'kind',
        source = 'call("ZADD", ${find_index(step, step.state)}, stamp, id)',
        undo = function(step, id)
            local key = find_index(step, step.state)
            if progress.kind then return end
            if step.state == step.origin then call('ZADD', key, progress.entered, id) else call('ZREM', key, id) end
        end,
    },
    {
        name = 'index of the state left',
        when = 'step.moved and not step.chart and step.origin and step.origin ~= step.state',
        unless = 'kind',
        source = 'call("ZREM", ${find_index(step, step.origin)}, id)',
        undo = function(step, id)
            if not progress.kind then call('ZADD', find_index(step, step.origin), progress.entered, id) end
        end,
    },
    {
        name = 'indexes of leaves entered',
        when = 'step.moved and step.chart',
        before = 'progress.placed = 0',
        each = 'list_entered(step)',
        source = [[progress.scores[${index}] = ${item.was_in} and call("ZSCORE", ${item.key}, id)
            call("ZADD", ${item.key}, stamp, id) progress.placed = ${index}]],
        undo = function(step, id)
            local entered = list_entered(step)
            for i = 1, progress.placed do
                local key, score = entered[i].key, progress.scores[i]
                if score then pcall_redis('ZADD', key, score, id) else pcall_redis('ZREM', key, id) end
            end
        end,
    },
    {
        name = 'history',
        when = 'step.program.history > 0',
        source = 'local by, mark = ' .. history_entries.MARKS .. [[
            long = call("RPUSH", ${step.program.history_prefix} .. id, ]] .. history_entries.SOURCE
            .. [[) > ${step.program.history + HISTORY_SLACK}]],
        undo = function(step, id) call('RPOP', step.program.history_prefix .. id) end,
    },
    {
        name = 'flow',
        unless = 'kind',
        before = 'progress.counted = 0',
        each = 'step.edges',
        source = 'call("HINCRBY", ${step.program.flow_key}, ${item.flow}, 1) progress.counted = ${index}',
        undo = function(step)
            local key = step.program.flow_key
            if progress.kind then return end
            for i = 1, progress.counted do
                local flow = step.edges[i].flow
                if call('HINCRBY', key, flow, -1) == 0 then call('HDEL', key, flow) end
            end
        end,
    },
    {
        name = 'count of instances',
        when = 'step.is_new',
        source = 'call("HINCRBY", find_meta(step.program.root), "instances", 1)',
        undo = function(step) call('HINCRBY', keys.meta(step.program.root), 'instances', -1) end,
    },
    {
        name = 'count of instances by version',
        when = 'step.is_new',
        source = 'count_new(step.program.root, step.program.version, true)',
        undo = function(step) version_counters.undo(step.program.root, step.program.version) end,
    },
    {
        name = 'jobs of states entered',
        when = 'step.started and step.started[1] or step.effects[1]',
        before = 'begin_jobs()',
        source = 'awaited = start_jobs(step, id, awaited, now)',
        undo = step_jobs.undo,
    },
    {
        name = 'timers',
        when = 'step.timed or step.timers_changed',
        before = 'progress.timers_log = {}',
        source = 'if timed.timers_changed then write_timers(timed, progress.timers_log) end',
        undo = function() chart_writes.undo(progress.timers_log) end,
    },
    {
        name = 'messages',
        when = 'step.messages and step.messages[1]',
        before = 'progress.messages_log = {}',
        source = 'post_messages(step, progress.messages_log)',
        undo = function() chart_writes.undo(progress.messages_log) end,
    },
    -- Requested jobs before log entries: an entry cannot be undone, so all that may fail comes first.
    { name = 'jobs requested by actions', when = 'step.effects[1]', source = 'request_jobs(step, id, now)' },
    { name = 'log entries', when = 'step.effects[1]', source = 'log_effects(step, id, revision)' },
    {
        name = 'log of steps',
        source = [[local logged = kind and kind.logged or not kind and is_logged(${step.program.root}, clock)
            if logged then
            log_step(${step.program.root}, ${step.program.machine}, id, revision, ${given.event}, ${quote_place(step)}) end]],
    },
    { name = 'instance', source = '${given.instance}' },
    -- Nothing can undo this one: it comes last.
    {
        name = 'indexes of leaves left',
        when = 'step.moved and step.chart',
        each = 'list_left(step)',
        source = 'remove_place(${item}, id)',
    },
    { name = 'end of what can be undone', source = 'progress.stage = ' .. WRITTEN },
    {
        name = 'length of the history',
        when = 'step.program.history > 0',
        source = 'if long then call("LTRIM", ${step.program.history_prefix} .. id, ${-step.program.history}, -1) end',
    },
    { name = 'bells', when = 'step.started and step.started[1] or step.effects[1]', source = 'ring_jobs(batch, clock)' },
    {
        name = 'withdrawn jobs',
        when = 'step.moved or step.has_ended',
        source = 'if gone and gone[1] then withdraw_jobs(step, gone) end',
    },
    {
        name = 'dead jobs',
        when = '(step.moved or step.has_ended) and step.raw and step.raw._dead',
        source = 'handle_dead_jobs(step, id, step.raw._dead, now)',
    },
    {
        name = 'pulse, or what a batch writes at its end',
        source = [[if kind then
                local count = kind.count + 1
                kind[count], kind.count = id, count
            elseif batch then add_kind(batch, step.edges, ${step.chart}, ${find_origin(step)}, ${find_place(step)},
                ${step.program.flow_key}, logged)
            else ring_pulse(${step.program.root}, clock) end]],
    },
}

-- The names that the plan uses.
step_plan.names = {
    { 'call', call }, { 'progress', progress }, { 'find_index', find_index }, { 'list_entered', list_entered },
    { 'list_left', list_left }, { 'quote_place', quote_place }, { 'log_effects', step_plan.log_effects },
    { 'HISTORY_SLACK', HISTORY_SLACK }, { 'quote', json.quote }, { 'find_origin', find_origin },
    { 'find_place', find_place }, { 'find_kind', batches.find_kind }, { 'add_kind', batches.add_kind },
    { 'begin_indexes', data_indexes.begin },
    { 'write_timers', chart_writes.write_timers }, { 'post_messages', chart_writes.post_messages },
    { 'remove_place', chart_writes.remove_from_index }, { 'begin_jobs', step_jobs.begin }, { 'start_jobs', step_jobs.start },
    { 'request_jobs', step_jobs.request }, { 'ring_jobs', step_jobs.ring }, { 'withdraw_jobs', step_jobs.withdraw },
    { 'handle_dead_jobs', step_jobs.handle_dead }, { 'is_logged', step_log.is_on }, { 'log_step', step_log.append },
    { 'find_meta', keys.meta }, { 'count_new', version_counters.add }, { 'ring_pulse', pulse.ring },
}

-- Printing

-- Makes the function that evaluates an expression of the plan.
local function make_reader(expression)
    return lua_source.load('return function(step, given, item, index) return ' .. expression .. ' end', step_plan.names)
end

-- Splits a source into texts and, at even places, what stands in `${...}`: its text and the function that evaluates it.
local function split(source)
    local parts, at = {}, 1
    source = gsub(source, '\n *', '\n')
    while true do
        local from, to, expression = find(source, '%${([^}]*)}', at)
        parts[#parts + 1] = sub(source, at, (from or 0) - 1)
        if not from then return parts end
        parts[#parts + 1] = { text = '(' .. expression .. ')', read = make_reader(expression),
            given = string.match(expression, '^given%.([%w_]+)$') }
        at = to + 1
    end
end

for _, write in ipairs(step_plan.writes) do
    write.test = write.when and make_reader(write.when)
    write.list = write.each and make_reader(write.each)
    write.parts = split(write.source)
end

local function to_literal(value)
    if type(value) == 'string' then return lua_source.quote(value) end
    if type(value) == 'number' then return format('%.17g', value) end
    return tostring(value)
end

-- Joins a source; `read` answers the code of a part in `${...}`.
local function join(write, given, read)
    local found = {}
    for i, part in ipairs(write.parts) do
        found[i] = i % 2 == 1 and part or part.given and (given[part.given] or '') or read(part)
    end
    return concat(found)
end

-- Adds the lines of a write, with the mark of its stage where it can be undone.
local function add_write(lines, number, write, add_items)
    local function mark()
        if find(lines[#lines] or '', '^progress%.stage = %d+$') then lines[#lines] = nil end -- nothing is between the two
        lines[#lines + 1] = 'progress.stage = ' .. number
    end
    if write.unless then lines[#lines + 1] = 'if not ' .. write.unless .. ' then' end
    if write.before then
        if write.undo then mark() end
        lines[#lines + 1] = write.before
    end
    add_items()
    if write.undo and not write.before then mark() end
    if write.unless then lines[#lines + 1] = 'end' end
end

-- Prints the writes of a step of which `step` is known. `given`: source of the parts that differ. Answers a list of lines.
function step_plan.print(step, given)
    local lines = {}
    for number, write in ipairs(step_plan.writes) do
        if not write.test or write.test(step) then
            add_write(lines, number, write, function()
                for index, item in ipairs(write.list and write.list(step) or { false }) do
                    local source = join(write, given, function(part) return to_literal(part.read(step, given, item, index)) end)
                    if source ~= '' then lines[#lines + 1] = source end
                end
            end)
        end
    end
    return lines
end

-- Prints the writes for any step. Answers the source of a function of `PARAMETERS`.
local function print_all(given)
    local lines = { 'return function(' .. PARAMETERS .. ')', LOCALS }
    for number, write in ipairs(step_plan.writes) do
        if write.when then lines[#lines + 1] = 'if ' .. write.when .. ' then' end
        add_write(lines, number, write, function()
            if write.each then lines[#lines + 1] = 'for index, item in ipairs(' .. write.each .. ') do' end
            lines[#lines + 1] = join(write, given, function(part) return part.text end)
            if write.each then lines[#lines + 1] = 'end' end
        end)
        if write.when then lines[#lines + 1] = 'end' end
    end
    lines[#lines + 1] = 'end'
    return concat(lines, '\n')
end

-- Makes the function that carries the plan out for any step. `names`: those that the source in `given` uses.
function step_plan.make(given, names)
    return lua_source.load(print_all(given), step_plan.names, names)
end

-- Running

local function undo()
    local step = progress.step
    for number = progress.stage, 1, -1 do
        local write = step_plan.writes[number]
        if write.undo and (not write.test or write.test(step)) then pcall(write.undo, step, progress.id) end
    end
end

-- Runs a function that writes a step, and answers what `pcall` answers. Where a write failed, the earlier ones are taken back;
-- what fails when the step is written is thrown.
function step_plan.try(write, ...)
    progress.stage = 0
    local ok, found = pcall(write, ...)
    if ok then return true, found end
    if progress.stage == WRITTEN then error(found, 0) end
    undo()
    return false, found
end

return step_plan
