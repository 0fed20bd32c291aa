-- needs: json, keys
-- Finding instances by their data, and by facts about them: for each indexed field a sorted set of members `<mark>NUL<id>`, all
-- of one score, in the order of their bytes. A mark is a letter for the type and the value: of a text its beginning, of a number
-- 16 hexadecimal digits that sort as numbers do. Whatever any version of the machine has declared is kept for the instances of
-- all versions.
local data_indexes = {}

local ACTOR = 'instance.actor'
local MAX_MARK = 64 -- bytes of a text: whoever reads an index looks at the instance itself
local call, pcall_redis, byte, find, sub = redis.call, redis.pcall, string.byte, string.find, string.sub
local NONE = {}
local BOUNDS = { 'ge', 'gt', 'le', 'lt' }

-- How to take back what the latest step wrote: three items each, a command, its key and a member.
local back = {}

-- Big-endian IEEE 754, made to sort: the sign bit turned, or all bits of what is negative.
local function of_number(value)
    local b = { byte(struct.pack('>d', value + 0), 1, 8) }
    if value == 0 then b = { 0, 0, 0, 0, 0, 0, 0, 0 } end -- of both signs
    if b[1] < 128 then
        b[1] = b[1] + 128
    else
        for i = 1, 8 do b[i] = 255 - b[i] end
    end
    return string.format('n%02x%02x%02x%02x%02x%02x%02x%02x', unpack(b))
end

-- Cut by bytes and before a NUL, so that a lower value never has the higher mark. Answers whether it is all of the value.
local function of_text(value)
    local stop = find(value, '%z')
    local kept = sub(value, 1, math.min(stop and stop - 1 or #value, MAX_MARK))
    return 's' .. kept, #kept == #value
end

-- The mark of a value, and whether it is all of it; nil for what no index holds.
local function mark(value)
    local kind = type(value)
    if kind == 'string' then return of_text(value) end
    if kind == 'number' then return of_number(value), true end
    if kind == 'boolean' then return value and 'b1' or 'b0', true end
end

local function entry_of(value, id)
    local found = mark(value)
    return found and found .. '\0' .. id
end
data_indexes.entry = entry_of

local function member(field, raw, id)
    return raw and entry_of(field.decode(raw), id) or nil
end

-- The number in `<version>:<digest>`.
function data_indexes.version(def)
    return tonumber(string.match(def, '^%d+'))
end

-- What can be indexed beside data, read from an instance's id and hash.
data_indexes.facts = {
    ['instance.id'] = function(id) return id end,
    [ACTOR] = function(_, raw) return raw._actor end,
    ['instance.version'] = function(_, raw) return data_indexes.version(raw._def) end,
}

-- The machine's list: `<field>:1`, or `<field>:0` while instances from before the field was declared may be missing, with
-- spaces between.
function data_indexes.listed(root)
    return call('HGET', keys.meta(root), 'by') or ''
end

-- Marks what of the list a program has.
function data_indexes.attach(compiled)
    local listed = data_indexes.listed(compiled.root)
    compiled.listed = listed
    for name, complete in string.gmatch(listed, '(%S+):([01])') do
        local field, fact = compiled.fields[name], data_indexes.facts[name]
        if field or fact then compiled.indexed, compiled.facts = compiled.indexed or {}, compiled.facts or {} end
        if field then
            field.lookup = keys.lookup(compiled.root, name)
            table.insert(compiled.indexed, field)
        elseif fact then
            table.insert(compiled.facts, { name = name, read = fact, lookup = keys.lookup(compiled.root, name) })
        end
        if complete == '0' then compiled.lagging = true end
    end
end

-- The machine's list with these fields added to it. `empty`: there is no instance that could be missing.
function data_indexes.extended(listed, names, empty)
    if empty then listed = string.gsub(listed, ':0', ':1') end
    for _, name in ipairs(names) do
        if not find(' ' .. listed, ' ' .. name .. ':', 1, true) then
            listed = (listed == '' and '' or listed .. ' ') .. name .. (empty and ':1' or ':0')
        end
    end
    return listed
end

-- The same, with nothing missing of one field any more.
function data_indexes.completed(listed, name)
    local found = {}
    for field, whole in string.gmatch(listed, '(%S+):([01])') do
        found[#found + 1] = field .. ':' .. (field == name and '1' or whole)
    end
    return table.concat(found, ' ')
end

local function add(key, entry)
    if call('ZADD', key, 0, entry) == 0 then return end
    local at = #back
    back[at + 1], back[at + 2], back[at + 3] = 'ZREM', key, entry
end

local function drop(key, entry)
    if call('ZREM', key, entry) == 0 then return end
    local at = #back
    back[at + 1], back[at + 2], back[at + 3] = 'ZADD', key, entry
end

-- What the instance's hash still holds of some fields, in their order.
local function stored(key, listed)
    if not listed[1] then return NONE end
    local names = {}
    for i, field in ipairs(listed) do names[i] = field.name end
    return call('HMGET', key, unpack(names))
end

-- The fields a step may have changed; while instances are missing, all.
local function concerned(ctx)
    local program = ctx.program
    if program.lagging then return program.indexed end
    local found = {}
    for _, field in ipairs(ctx.changed) do
        if field.lookup then found[#found + 1] = field end
    end
    return found
end

-- Of these only the actor ever changes; `ctx.renamed` is who it was before.
local function write_facts(ctx)
    for _, fact in ipairs(ctx.program.facts) do
        local renamed = fact.name == ACTOR and ctx.named
        if ctx.born or ctx.program.lagging or renamed then
            local entry = entry_of(fact.read(ctx.id, ctx.raw), ctx.id)
            if entry then add(fact.lookup, entry) end
        end
        if renamed and ctx.renamed then drop(fact.lookup, entry_of(ctx.renamed, ctx.id)) end
    end
end

-- The first thing a step writes, before its instance.
function data_indexes.write(ctx)
    local program, id, raw = ctx.program, ctx.id, ctx.raw
    back = {}
    local listed = concerned(ctx)
    local was = ctx.born and NONE or stored(ctx.key, listed)
    for i, field in ipairs(listed) do
        local before, after = member(field, was[i], id), member(field, raw[field.name], id)
        if after and (after ~= before or program.lagging) then add(field.lookup, after) end
        if before and before ~= after then drop(field.lookup, before) end
    end
    write_facts(ctx)
end

-- A later write of the same step failed.
function data_indexes.take_back()
    for i = #back - 2, 1, -3 do
        if back[i] == 'ZADD' then
            pcall_redis('ZADD', back[i + 1], 0, back[i + 2])
        else
            pcall_redis('ZREM', back[i + 1], back[i + 2])
        end
    end
    back = {}
end

-- The instance goes. What its hash holds counts: the picture at hand may have changed since.
function data_indexes.remove(ctx)
    local program, id = ctx.program, ctx.id
    if not program.indexed then return end
    local was = stored(ctx.key, program.indexed)
    for i, field in ipairs(program.indexed) do
        local entry = member(field, was[i], id)
        if entry then pcall_redis('ZREM', field.lookup, entry) end
    end
    for _, fact in ipairs(program.facts) do
        local entry = entry_of(fact.read(id, ctx.raw), id)
        if entry then pcall_redis('ZREM', fact.lookup, entry) end
    end
end

-- Adds an instance as it is stored; `ctx` has changed nothing.
function data_indexes.restore(ctx)
    for _, field in ipairs(ctx.program.indexed or NONE) do
        local entry = member(field, ctx.raw[field.name], ctx.id)
        if entry then call('ZADD', field.lookup, 0, entry) end
    end
    for _, fact in ipairs(ctx.program.facts or NONE) do
        local entry = entry_of(fact.read(ctx.id, ctx.raw), ctx.id)
        if entry then call('ZADD', fact.lookup, 0, entry) end
    end
end

local function after(text)
    return sub(text, 1, -2) .. string.char(byte(text, -1) + 1)
end

-- The range of members a condition allows, as ZRANGEBYLEX takes it; wider than the condition where marks are cut. A
-- condition is {eq = value}, {prefix = text}, or any of ge, gt, le, lt; nil for a value no index holds.
function data_indexes.range(condition)
    if condition.prefix then
        local from = of_text(condition.prefix)
        return '[' .. from, '(' .. after(from)
    end
    if condition.eq ~= nil then
        local found = mark(condition.eq)
        if not found then return nil end
        return '[' .. found .. '\0', '(' .. found .. '\1'
    end
    local low, high = condition.ge, condition.le
    if low == nil then low = condition.gt end
    if high == nil then high = condition.lt end
    local low_mark = mark(low)
    local high_mark, whole = mark(high)
    if not low_mark and not high_mark then return nil end
    local kind = sub(low_mark or high_mark, 1, 1)
    local from, to = '[' .. kind, '(' .. after(kind)
    -- What a cut mark stands for may be higher than the text it was cut to, and never lower.
    if low_mark then from = '[' .. low_mark .. (condition.ge == nil and kind ~= 's' and '\1' or '') end
    if high_mark then to = '(' .. high_mark .. (condition.le == nil and whole and '\0' or '\1') end
    return from, to
end

-- The id a member stands for.
function data_indexes.id(entry)
    return sub(entry, find(entry, '%z') + 1)
end

-- The part of a range that lies behind `position`, '' for all of it.
function data_indexes.narrowed(from, to, position, descending)
    if position == '' then return from, to end
    if descending then return from, '(' .. position end
    return '(' .. position, to
end

function data_indexes.hex(text)
    return (string.gsub(text, '.', function(character) return string.format('%02x', byte(character)) end))
end

-- nil where it is none.
function data_indexes.unhex(text)
    if #text % 2 == 1 or find(text, '[^0-9a-f]') then return nil end
    return (string.gsub(text, '..', function(digits) return string.char(tonumber(digits, 16)) end))
end

-- Why something is no condition; nil where it is one. Bounds are of one type, else nothing could be compared with them.
local function unsound(condition)
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

-- Why these are no conditions; nil where each is one.
function data_indexes.misfit(conditions)
    if type(conditions) ~= 'table' then return 'conditions are a JSON array' end
    for _, condition in ipairs(conditions) do
        local why = unsound(condition)
        if why then return why end
    end
    return nil
end

-- The conditions of a call, decoded; nil and why where they are none. A value that is null is json.null.
function data_indexes.conditions(text)
    local ok, found = pcall(json.decode, text or '')
    local why = data_indexes.misfit(ok and found or nil)
    if why then return nil, why end
    return found
end

return data_indexes
