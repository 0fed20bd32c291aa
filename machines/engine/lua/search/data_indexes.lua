-- needs: arguments, json, keys
-- Indexes of instances by their data and by facts about them: for each indexed field a sorted set of members
-- `<mark>NUL<id>`, all of one score, in the order of their bytes. A mark is a letter for the type, then the value: the
-- beginning of a text, or 16 hexadecimal digits that sort like the number. A field that any version of the machine has
-- declared is indexed for the instances of all versions.
local data_indexes = {}

local ACTOR, TRANSITION = 'instance.actor', 'instance.transition'
data_indexes.ACTOR = ACTOR
local MAX_ARRIVALS = 32 -- transitions kept of one step
local MAX_MARK = 64 -- bytes of a text: readers of an index check the instance itself
local call, pcall_redis, byte, find, sub = redis.call, redis.pcall, string.byte, string.find, string.sub
local EMPTY = {}
local BOUNDS = { 'ge', 'gt', 'le', 'lt' }

-- How to undo the writes of the latest step: three items each, a command, its key and a member.
local undo_log = {}

-- Big-endian IEEE 754, changed to sort: the sign bit of positive numbers is flipped, or all bits of negative ones.
local function encode_number(value)
    local b = { byte(struct.pack('>d', value + 0), 1, 8) }
    if value == 0 then b = { 0, 0, 0, 0, 0, 0, 0, 0 } end -- of both signs
    if b[1] < 128 then
        b[1] = b[1] + 128
    else
        for i = 1, 8 do b[i] = 255 - b[i] end
    end
    return string.format('n%02x%02x%02x%02x%02x%02x%02x%02x', unpack(b))
end

-- Cuts by bytes and before a NUL, so that a lower value never gets the higher mark. Tells whether the mark is the whole
-- value.
local function encode_text(value)
    local stop = find(value, '%z')
    local kept = sub(value, 1, math.min(stop and stop - 1 or #value, MAX_MARK))
    return 's' .. kept, #kept == #value
end

-- Answers the mark of a value and whether it is the whole value; nil for values that no index holds.
local function encode_value(value)
    local kind = type(value)
    if kind == 'string' then return encode_text(value) end
    if kind == 'number' then return encode_number(value), true end
    if kind == 'boolean' then return value and 'b1' or 'b0', true end
end

local function make_entry(value, id)
    local found = encode_value(value)
    return found and found .. '\0' .. id
end
data_indexes.make_entry = make_entry

local function make_member(field, raw, id)
    return raw and make_entry(field.decode(raw), id) or nil
end

-- Parses the number in `<version>:<digest>`.
function data_indexes.parse_version(def)
    return tonumber(string.match(def, '^%d+'))
end

-- The facts that can be indexed beside data, read from an instance's id and hash.
data_indexes.facts = {
    ['instance.id'] = function(id) return id end,
    [ACTOR] = function(_, raw) return raw._actor end,
    ['instance.version'] = function(_, raw) return data_indexes.parse_version(raw._def) end,
    [TRANSITION] = function() return nil end, -- has several values: list_arrivals
}

-- The field `_came` holds the transitions of the step that entered each leaf: lines `<version>:<transition> ...TAB<leaf>`.
-- A leaf that was entered by no transition, as by a repair, has no line. Answers transition -> true.
local function list_arrivals(came)
    local found = {}
    for names in string.gmatch(came or '', '([^\n\t]+)\t[^\n]*') do
        for name in string.gmatch(names, '[^ ]+') do found[name] = true end
    end
    return found
end

-- Answers the only transition of the field; nil when there are more, or none.
local function parse_single_arrival(came)
    return came and string.match(came, '^([^ \n\t]+)\t[^\n]*$')
end

-- Tells whether a transition led an instance to where it is.
function data_indexes.has_arrival(came, transition)
    return type(transition) == 'string' and list_arrivals(came)[transition] == true
end

-- Makes the field for the step of a context.
local function encode_arrivals(ctx)
    local names, lines, edges = {}, {}, ctx.edges
    if not ctx.chart and not edges[2] then return edges[1] and edges[1].flow .. '\t' .. ctx.program.states[ctx.state].name end
    for i = math.max(1, #edges - MAX_ARRIVALS + 1), #edges do names[#names + 1] = edges[i].flow end
    local taken = names[1] and table.concat(names, ' ') .. '\t'
    local kept = {}
    for line, leaf in string.gmatch(ctx.raw._came or '', '([^\n\t]+\t([^\n]*))') do kept[leaf] = line end
    for _, index in ipairs(ctx.config.leaves) do
        local leaf = ctx.program.states[index].name
        if ctx.fresh[index] then
            if taken then lines[#lines + 1] = taken .. leaf end
        elseif kept[leaf] then
            lines[#lines + 1] = kept[leaf]
        end
    end
    return lines[1] and table.concat(lines, '\n')
end

-- Visits the index key and the entry of each value that an instance has of a fact.
local function visit_entries(fact, id, raw, visit)
    if fact.name == TRANSITION then
        for name in pairs(list_arrivals(raw._came)) do visit(fact.lookup, make_entry(name, id)) end
        return
    end
    local entry = make_entry(fact.read(id, raw), id)
    if entry then visit(fact.lookup, entry) end
end

-- Reads the machine's list: `<field>:1`, or `<field>:0` while instances created before the field was declared may be
-- missing, separated by spaces.
function data_indexes.read_list(root)
    return call('HGET', keys.meta(root), 'by') or ''
end

-- Attaches the indexes of the list that a program writes.
function data_indexes.attach(compiled)
    local listed = data_indexes.read_list(compiled.root)
    compiled.listed = listed
    for name, complete in string.gmatch(listed, '(%S+):([01])') do
        local field, fact = compiled.fields[name], data_indexes.facts[name]
        if field or fact then compiled.indexed, compiled.facts = compiled.indexed or {}, compiled.facts or {} end
        if field then
            field.lookup = keys.lookup(compiled.root, name)
            table.insert(compiled.indexed, field)
        elseif fact then
            table.insert(compiled.facts, { name = name, read = fact, lookup = keys.lookup(compiled.root, name) })
            if name == TRANSITION then compiled.arrivals = keys.lookup(compiled.root, name) end
        end
        if complete == '0' then compiled.has_incomplete_index = true end
    end
end

-- Adds fields to the machine's list. `empty`: no instance exists that could be missing.
function data_indexes.extend_list(listed, names, empty)
    if empty then listed = string.gsub(listed, ':0', ':1') end
    for _, name in ipairs(names) do
        if not find(' ' .. listed, ' ' .. name .. ':', 1, true) then
            listed = (listed == '' and '' or listed .. ' ') .. name .. (empty and ':1' or ':0')
        end
    end
    return listed
end

-- Marks one field of the list as complete.
function data_indexes.complete_list(listed, name)
    local found = {}
    for field, whole in string.gmatch(listed, '(%S+):([01])') do
        found[#found + 1] = field .. ':' .. (field == name and '1' or whole)
    end
    return table.concat(found, ' ')
end

local function add(key, entry)
    if call('ZADD', key, 0, entry) == 0 then return end
    local at = #undo_log
    undo_log[at + 1], undo_log[at + 2], undo_log[at + 3] = 'ZREM', key, entry
end

local function drop(key, entry)
    if call('ZREM', key, entry) == 0 then return end
    local at = #undo_log
    undo_log[at + 1], undo_log[at + 2], undo_log[at + 3] = 'ZADD', key, entry
end

-- Reads the stored values of some fields of the instance, in their order.
local function read_stored(key, listed)
    if not listed[1] then return EMPTY end
    local names = {}
    for i, field in ipairs(listed) do names[i] = field.name end
    return call('HMGET', key, unpack(names))
end

-- Selects the indexed fields that a step may have changed; all of them while instances are missing.
local function select_changed(ctx)
    local program = ctx.program
    if program.has_incomplete_index then return program.indexed end
    local found = {}
    for _, field in ipairs(ctx.changed) do
        if field.lookup then found[#found + 1] = field end
    end
    return found
end

-- Writes the index of transitions, and notes the field that `commit` writes.
local function write_arrivals(ctx)
    local before, lookup = ctx.raw._came, ctx.program.arrivals
    local after = before
    if ctx.moved or ctx.is_new then after = encode_arrivals(ctx) or nil end
    if after == before and not ctx.program.has_incomplete_index then return end
    ctx.came_changed, ctx.raw._came = after ~= before, after
    local left, entered = parse_single_arrival(before), parse_single_arrival(after)
    if (left or not before) and (entered or not after) and not ctx.program.has_incomplete_index then
        if left == entered then return end
        if entered then add(lookup, make_entry(entered, ctx.id)) end
        if left then drop(lookup, make_entry(left, ctx.id)) end
        return
    end
    local was, now = list_arrivals(before), list_arrivals(after)
    for name in pairs(now) do
        if not was[name] or ctx.program.has_incomplete_index then add(lookup, make_entry(name, ctx.id)) end
    end
    for name in pairs(was) do
        if not now[name] then drop(lookup, make_entry(name, ctx.id)) end
    end
end

data_indexes.write_arrivals = write_arrivals

-- Only the actor can change; `ctx.previous_actor` is the one before.
local function write_facts(ctx)
    for _, fact in ipairs(ctx.program.facts) do
        local renamed = fact.name == ACTOR and ctx.actor_changed
        if ctx.is_new or ctx.program.has_incomplete_index or renamed then
            local entry = make_entry(fact.read(ctx.id, ctx.raw), ctx.id)
            if entry then add(fact.lookup, entry) end
        end
        if renamed and ctx.previous_actor then drop(fact.lookup, make_entry(ctx.previous_actor, ctx.id)) end
    end
end

-- Begins the writes of a step.
function data_indexes.begin()
    if undo_log[1] then undo_log = {} end
end

-- Moves an instance in the index of a field, for compiled steps, which know what changed. `before` and `after` are stored
-- texts, nil for none.
function data_indexes.change(field, id, before, after)
    before, after = make_member(field, before, id), make_member(field, after, id)
    if after and after ~= before then add(field.lookup, after) end
    if before and before ~= after then drop(field.lookup, before) end
end

-- Moves an instance in the index of actors, if the machine has one.
function data_indexes.change_actor(program, id, before, after)
    for _, fact in ipairs(program.facts) do
        if fact.name == ACTOR then
            add(fact.lookup, make_entry(after, id))
            if before then drop(fact.lookup, make_entry(before, id)) end
        end
    end
end

-- Writes the indexes, before anything else of a step.
function data_indexes.write(ctx)
    local program, id, raw = ctx.program, ctx.id, ctx.raw
    local listed = select_changed(ctx)
    local was = ctx.is_new and EMPTY or read_stored(ctx.key, listed)
    for i, field in ipairs(listed) do
        local before, after = make_member(field, was[i], id), make_member(field, raw[field.name], id)
        if after and (after ~= before or program.has_incomplete_index) then add(field.lookup, after) end
        if before and before ~= after then drop(field.lookup, before) end
    end
    write_facts(ctx)
    if program.arrivals then write_arrivals(ctx) end
end

-- Undoes the index writes when a later write of the same step failed.
function data_indexes.undo()
    for i = #undo_log - 2, 1, -3 do
        if undo_log[i] == 'ZADD' then
            pcall_redis('ZADD', undo_log[i + 1], 0, undo_log[i + 2])
        else
            pcall_redis('ZREM', undo_log[i + 1], undo_log[i + 2])
        end
    end
    undo_log = {}
end

-- Visits the index key and the entry of each value of an instance that a program indexes. `stored`: the values of its indexed
-- fields in their order, where `raw` does not have them.
local function visit_all(program, id, raw, stored, visit)
    for i, field in ipairs(program.indexed or EMPTY) do
        local value = raw[field.name]
        if stored then value = stored[i] end
        local entry = make_member(field, value, id)
        if entry then visit(field.lookup, entry) end
    end
    for _, fact in ipairs(program.facts or EMPTY) do visit_entries(fact, id, raw, visit) end
end

-- Lists index key .. NUL .. entry -> {key, entry} of an instance, as a program indexes it.
local function list_entries(program, id, raw)
    local found = {}
    visit_all(program, id, raw, nil, function(key, entry) found[key .. '\1' .. entry] = { key, entry } end)
    return found
end

-- Moves an instance from the indexes of one program to those of another; `before` and `after` are its hash. `undo` takes it
-- back.
function data_indexes.move(id, old, before, new, after)
    undo_log = {}
    if not old.indexed and not new.indexed then return end
    local was, now = list_entries(old, id, before), list_entries(new, id, after)
    for name, entry in pairs(now) do
        if not was[name] or new.has_incomplete_index then add(entry[1], entry[2]) end
    end
    for name, entry in pairs(was) do
        if not now[name] then drop(entry[1], entry[2]) end
    end
end

-- Removes an instance. Reads its stored hash, because the context may have changed.
function data_indexes.remove_instance(ctx)
    local program = ctx.program
    if not program.indexed then return end
    local stored = read_stored(ctx.key, program.indexed)
    visit_all(program, ctx.id, ctx.raw, stored, function(key, entry) pcall_redis('ZREM', key, entry) end)
end

-- Adds an instance as it is stored; `ctx` has changed nothing.
function data_indexes.add_instance(ctx)
    visit_all(ctx.program, ctx.id, ctx.raw, nil, function(key, entry) call('ZADD', key, 0, entry) end)
end

local function next_text(text)
    return sub(text, 1, -2) .. string.char(byte(text, -1) + 1)
end

-- Makes the range of members that a condition allows, for ZRANGEBYLEX; wider than the condition where marks are cut. A
-- condition is {eq = value}, {prefix = text}, or any of ge, gt, le, lt; nil for a value that no index holds.
function data_indexes.make_range(condition)
    if condition.prefix then
        local from = encode_text(condition.prefix)
        return '[' .. from, '(' .. next_text(from)
    end
    if condition.eq ~= nil then
        local found = encode_value(condition.eq)
        if not found then return nil end
        return '[' .. found .. '\0', '(' .. found .. '\1'
    end
    local low, high = condition.ge, condition.le
    if low == nil then low = condition.gt end
    if high == nil then high = condition.lt end
    local low_mark = encode_value(low)
    local high_mark, whole = encode_value(high)
    if not low_mark and not high_mark then return nil end
    local kind = sub(low_mark or high_mark, 1, 1)
    local from, to = '[' .. kind, '(' .. next_text(kind)
    -- The full value behind a cut mark may be higher than the mark, never lower.
    if low_mark then from = '[' .. low_mark .. (condition.ge == nil and kind ~= 's' and '\1' or '') end
    if high_mark then to = '(' .. high_mark .. (condition.le == nil and whole and '\0' or '\1') end
    return from, to
end

-- Parses the id in a member.
function data_indexes.parse_id(entry)
    return sub(entry, find(entry, '%z') + 1)
end

-- Narrows a range to the part behind `position`; '' for all of it.
function data_indexes.narrow_range(from, to, position, descending)
    if position == '' then return from, to end
    if descending then return from, '(' .. position end
    return '(' .. position, to
end

function data_indexes.to_hex(text)
    return (string.gsub(text, '.', function(character) return string.format('%02x', byte(character)) end))
end

-- Answers nil for a text that is no hex.
function data_indexes.from_hex(text)
    if #text % 2 == 1 or find(text, '[^0-9a-f]') then return nil end
    return (string.gsub(text, '..', function(digits) return string.char(tonumber(digits, 16)) end))
end

-- Answers why something is no condition; nil when it is one. Bounds have one type, because no value compares with two.
local function check_condition(condition)
    if type(condition) ~= 'table' or type(condition.field) ~= 'string' then return 'a condition names its field' end
    if condition.prefix ~= nil and type(condition.prefix) ~= 'string' then return 'a prefix is text' end
    local kind
    for _, word in ipairs(BOUNDS) do
        local bound = condition[word]
        if bound ~= nil then
            local fits = (type(bound) == 'number' or type(bound) == 'string') and type(bound) == (kind or type(bound))
            if not fits then return 'bounds are numbers, or texts' end
            kind = type(bound)
        end
    end
    return nil
end

-- Answers why these are no conditions; nil when each is one.
function data_indexes.check_conditions(conditions)
    if type(conditions) ~= 'table' then return 'conditions are a JSON array' end
    for _, condition in ipairs(conditions) do
        local why = check_condition(condition)
        if why then return why end
    end
    return nil
end

-- Parses the conditions of a call; ends it with BADARG when they are malformed. A null value is json.null.
function data_indexes.parse_conditions(text)
    local ok, found = pcall(json.decode, text or '')
    arguments.refuse(data_indexes.check_conditions(ok and found or nil))
    return found
end

return data_indexes
