-- needs: arithmetic, builtins, json, lua_source, values
-- Writes expressions of the checked program as Lua source. Names and texts enter as quoted literals alone, so that no
-- definition can add code. What is not known here (`random()`, lists, a field of JSON) makes the writer give up, and the
-- interpreter takes the step. A value that the source does not expect raises a Lua error: the interpreter then takes the
-- step, too, and says what is wrong. So the source need not check what Lua itself refuses, such as comparing text with nil.
local step_source = {}

local MAX_PARTS = 80 -- of the expressions of one step: Lua allows 200 locals
local MAX_SOURCE = 120000 -- bytes written for one step, some 40 ms of the server
local MAX_FAILED = 1000 -- steps of one program that cannot be compiled; then no more of it are
local MAX_CHANGES = 100 -- of the data in one step: Lua allows 250 registers
local MAX_BITS = 900 -- of a whole number that cannot become infinite
local WHOLE_BITS, SECONDS_BITS = 53, 37
local PURE = { -- functions that read nothing of the step, with the kind of their result
    len = 'number', abs = 'number', floor = 'number', ceil = 'number', int = 'number', round = 'number', number = 'number',
    str = 'text', lower = 'text', upper = 'text', strip = 'text', bool = 'boolean', startswith = 'boolean',
    endswith = 'boolean', contains = 'boolean', min = 'any', max = 'any',
}
local ORDER = { ['<'] = true, ['<='] = true, ['>'] = true, ['>='] = true }

local format, concat, quote = string.format, table.concat, lua_source.quote

-- The names that written expressions use.
step_source.names = {
    { 'tonumber', tonumber }, { 'type', type }, { 'find', string.find }, { 'number', json.number }, { 'quote', json.quote },
    { 'null', json.null }, { 'is_true', values.is_true }, { 'is_equal', values.is_equal }, { 'is_less', values.is_less },
    { 'contains', values.contains }, { 'check_number', values.check_number }, { 'get', values.get },
    { 'arithmetic', arithmetic }, { 'builtins', builtins },
}

step_source.UNKNOWN = '' -- stands for all events that a definition does not know: no event has this name

local failures = {} -- root -> steps of all its programs that could not be compiled, since the library was loaded

-- Compiles something of a program with `build`, and answers what that answers. Where it throws, the answer is false, now and
-- at each later call with this name: the interpreter has to take the step.
function step_source.compile(program, name, build, ...)
    local failed = program.failed or { count = 0, of = {} }
    if failed.of[name] or failed.count >= MAX_FAILED then return false end
    local ok, made, detail = pcall(build, ...)
    if ok then return made, detail end
    failed.of[name], failed.count, program.failed = true, failed.count + 1, failed
    failures[program.root] = (failures[program.root] or 0) + 1
    redis.log(redis.LOG_NOTICE,
        string.format('a step of %s is left to the interpreter: %s', program.root, tostring(made)))
    return false
end

-- Answers how often compiling a step failed in a partition.
function step_source.count_failures(root) return failures[root] or 0 end

-- Ends the writing of a step that the interpreter has to take.
local function give_up(writer)
    writer.gave_up = true
    error({ sb = 'this step is not compiled' })
end
step_source.give_up = give_up

-- Makes a writer of what an event does to instances whose hash has the fields of `shape`: {names, positions}. `positions`: name
-- of a hash field -> where its value stands among the values read. `steps`: what is known of the steps that it writes.
function step_source.open(program, shape, event)
    return { program = program, shape = shape, positions = shape.positions, event = event, active = nil, steps = {}, lines = {},
        size = 0, parts = 0, temporaries = 0, known = {}, payload = {} }
end

function step_source.line(writer, text)
    writer.lines[#writer.lines + 1], writer.size = text, writer.size + #text
end
local line = step_source.line

-- Gives up a step that was long to write, or that changes more than fits into one command.
function step_source.check_size(writer, changes)
    if writer.size > MAX_SOURCE or #changes > MAX_CHANGES then give_up(writer) end
end

-- Copies a table of what is known.
function step_source.copy(map)
    local made = {}
    for key, value in pairs(map) do made[key] = value end
    return made
end

-- Answers a function that makes the writer forget what it learns from now on: behind a branch, which may not have run.
function step_source.remember(writer)
    local known, payload = step_source.copy(writer.known), step_source.copy(writer.payload)
    local seconds, silent = writer.seconds, writer.silent
    return function() writer.known, writer.payload, writer.seconds, writer.silent = known, payload, seconds, silent end
end

-- Runs `write`; where it gives up, what it has written is dropped for a line that leaves the step to the interpreter. Answers
-- whether it was written, and what `write` answers.
function step_source.attempt(writer, write, ...)
    local before = #writer.lines
    local ok, found = pcall(write, ...)
    if ok then return true, found end
    if not writer.gave_up then error(found, 0) end
    writer.gave_up = false
    for i = #writer.lines, before + 1, -1 do writer.lines[i] = nil end
    line(writer, 'do return nil end')
    return false
end

local function make_name(writer, prefix)
    writer.temporaries = writer.temporaries + 1
    return prefix .. writer.temporaries
end

-- Keeps a value in a local. A value is {code, kind}, for whole numbers with the most bits they may have.
local function keep(writer, code, kind, bits)
    local name = make_name(writer, 'v')
    line(writer, 'local ' .. name .. ' = ' .. code)
    return { name, kind, bits = bits }
end

local NIL = { 'nil', 'nil' }
local OPPOSITE = { ['true'] = 'false', ['false'] = 'true' }

local function is_number(value) return value[2] == 'number' end

-- Writes the test of a value by Python's rules.
local function write_test(value)
    local code, kind = value[1], value[2]
    if kind == 'boolean' then return code end
    if kind == 'nil' then return 'false' end
    if kind == 'number' then return format('(%s ~= 0 and %s ~= nil)', code, code) end
    if kind == 'text' then return format('(%s ~= "" and %s ~= nil)', code, code) end
    return format('is_true(%s)', code)
end
step_source.write_test = write_test

local forms, write = {}, nil

forms['null'] = function() return NIL end
forms['true'] = function() return { 'true', 'boolean' } end
forms['false'] = function() return { 'false', 'boolean' } end
forms.because = function(node, writer) return write(node[3], writer) end

-- Writes a constant; a whole one with the bits that it has.
local function write_number(number)
    local whole = number % 1 == 0 and number > -2 ^ WHOLE_BITS and number < 2 ^ WHOLE_BITS
    if not whole then return { format('%.17g', number), 'number' } end
    local bits = 1
    while 2 ^ bits <= math.abs(number) do bits = bits + 1 end
    return { format('%.0f', number), 'number', bits = bits, number = number }
end

forms.num = function(node, writer)
    local number = node[2]
    if number ~= number or number == math.huge or number == -math.huge then give_up(writer) end
    return write_number(number)
end

forms.str = function(node) return { quote(node[2]), 'text' } end

forms.now = function(_, writer)
    if not writer.seconds then writer.seconds = keep(writer, '(now - now % 1000) / 1000', 'number', SECONDS_BITS) end
    return writer.seconds
end

local CODES = {
    integer = { 'tonumber(%s)', 'number', WHOLE_BITS },
    number = { 'tonumber(%s)', 'number' },
    string = { '%s', 'text' },
    boolean = { '%s == "true"', 'boolean' },
}

forms.data = function(node, writer)
    local name = node[2]
    local known = writer.known[name]
    if known then return known end
    local field, position = writer.program.fields[name], writer.positions[name]
    local codes = field and CODES[field.type]
    if not codes then give_up(writer) end
    known = position and keep(writer, format(codes[1], 'f[' .. position .. ']'), codes[2], codes[3]) or NIL
    writer.known[name] = known
    return known
end

forms.get = function(node, writer)
    if node[3][1] ~= 'str' then give_up(writer) end
    if node[2][1] == 'get' then
        local container = write(node[2], writer)
        if container[2] == 'nil' then return NIL end
        return keep(writer, format('get(%s, %s)', container[1], quote(node[3][2])), 'any')
    end
    if node[2][1] ~= 'event' then give_up(writer) end
    local name = node[3][2]
    if writer.silent then return NIL end
    if not writer.payload[name] then
        local value = keep(writer, 'payload[' .. quote(name) .. ']', 'any')
        line(writer, format('if %s == null then %s = nil end', value[1], value[1]))
        writer.payload[name] = value
    end
    return writer.payload[name]
end

forms['in'] = function(node, writer)
    if not writer.active then give_up(writer) end
    return { tostring(writer.active[writer.program.index[node[2]]] == true), 'boolean' }
end

forms['not'] = function(node, writer)
    local test = write_test(write(node[2], writer))
    if OPPOSITE[test] then return { OPPOSITE[test], 'boolean' } end
    return keep(writer, 'not ' .. test, 'boolean')
end

forms.neg = function(node, writer)
    local value = write(node[2], writer)
    if value[2] == 'nil' then give_up(writer) end
    local code = is_number(value) and value[1] or 'check_number(' .. value[1] .. ')'
    return keep(writer, '-(' .. code .. ')', 'number', value.bits)
end

-- A branch that is not compiled leaves the step to the interpreter when it is reached. Answers the kind of the value, nil then.
local function write_branch(writer, result, node)
    local restore = step_source.remember(writer)
    local ok, value = step_source.attempt(writer, write, node, writer)
    if ok then line(writer, result .. ' = ' .. value[1]) end
    restore()
    return ok and value[2] or nil
end

-- `and` answers its first false part, `or` its first true one, and both their last part otherwise.
-- Parts whose test is known since the step is compiled are left out, but for the last.
local function write_chain(node, writer, continues, skipped)
    local from, first = 2, write(node[2], writer)
    while OPPOSITE[write_test(first)] and from < #node do
        if write_test(first) ~= skipped then return first end
        from, first = from + 1, write(node[from + 1], writer)
    end
    if from == #node then return first end
    local result = keep(writer, first[1], first[2])
    local kind = first[2]
    for i = from + 1, #node do
        line(writer, format(continues, write_test({ result[1], kind })))
        local other = write_branch(writer, result[1], node[i])
        if other and other ~= kind then kind = 'any' end
    end
    for _ = from + 1, #node do line(writer, 'end') end
    return { result[1], kind }
end

forms['and'] = function(node, writer) return write_chain(node, writer, 'if %s then', 'true') end
forms['or'] = function(node, writer) return write_chain(node, writer, 'if not %s then', 'false') end

forms['if'] = function(node, writer)
    local test = write(node[2], writer)
    local result = make_name(writer, 'v')
    line(writer, 'local ' .. result)
    line(writer, 'if ' .. write_test(test) .. ' then')
    local yes = write_branch(writer, result, node[3])
    line(writer, 'else')
    local no = write_branch(writer, result, node[4])
    line(writer, 'end')
    if not yes and not no then give_up(writer) end
    return { result, (not yes or not no or yes == no) and (yes or no) or 'any' }
end

local function write_comparison(writer, operator, left, right)
    local a, b = left[1], right[1]
    if operator == '==' or operator == '!=' then
        local both_open = left[2] == 'any' and right[2] == 'any'
        local equal = both_open and format('is_equal(%s, %s)', a, b) or format('(%s == %s)', a, b)
        return keep(writer, operator == '!=' and 'not ' .. equal or equal, 'boolean')
    elseif ORDER[operator] then
        if left[2] == 'nil' or right[2] == 'nil' or left[2] == 'boolean' or right[2] == 'boolean' then give_up(writer) end
        if is_number(left) or is_number(right) then return keep(writer, a .. ' ' .. operator .. ' ' .. b, 'boolean') end
        local swapped = operator == '>' or operator == '<='
        local less = swapped and format('is_less(%s, %s)', b, a) or format('is_less(%s, %s)', a, b)
        return keep(writer, #operator == 2 and 'not ' .. less or less, 'boolean')
    end
    return keep(writer, (operator == 'not in' and 'not ' or '') .. format('contains(%s, %s)', b, a), 'boolean')
end

forms.cmp = function(node, writer)
    local left, right = write(node[2], writer), write(node[3][2], writer)
    local result = write_comparison(writer, node[3][1], left, right)
    local restore = step_source.remember(writer)
    for i = 4, #node do
        line(writer, 'if ' .. result[1] .. ' then')
        left, right = right, write(node[i][2], writer)
        line(writer, result[1] .. ' = ' .. write_comparison(writer, node[i][1], left, right)[1])
    end
    for _ = 4, #node do line(writer, 'end') end
    restore()
    return result
end

-- Sums, differences and products of whole numbers stay finite up to a size, and need no check.
local function write_whole(writer, operator, left, right)
    if not left.bits or not right.bits then return nil end
    local bits = operator == '*' and left.bits + right.bits or math.max(left.bits, right.bits) + 1
    if operator ~= '+' and operator ~= '-' and operator ~= '*' or bits > MAX_BITS then return nil end
    if left.number and right.number and bits < WHOLE_BITS then
        local a, b = left.number, right.number
        return write_number(operator == '+' and a + b or operator == '-' and a - b or a * b)
    end
    return keep(writer, left[1] .. ' ' .. operator .. ' ' .. right[1], 'number', bits)
end

forms.bin = function(node, writer)
    local operator, left, right = node[2], write(node[3], writer), write(node[4], writer)
    if left[2] == 'nil' or right[2] == 'nil' then give_up(writer) end
    local whole = write_whole(writer, operator, left, right)
    if whole then return whole end
    local kind = 'number'
    if operator == '+' and not (is_number(left) and is_number(right)) then kind = 'any' end
    return keep(writer, format('arithmetic[%s](%s, %s)', quote(operator), left[1], right[1]), kind)
end

forms.call = function(node, writer)
    local name = node[2]
    local kind = PURE[name]
    if not kind or not builtins[name] then give_up(writer) end
    local arguments = { 'nil' }
    for i = 3, #node do arguments[#arguments + 1] = write(node[i], writer)[1] end
    return keep(writer, format('builtins.%s(%s)', name, concat(arguments, ', ')), kind)
end

write = function(node, writer)
    writer.parts = writer.parts + 1
    local form = forms[node[1]]
    if not form or writer.parts > MAX_PARTS then give_up(writer) end
    return form(node, writer)
end
step_source.write = write

-- Writes the check and the stored text of a value for a field. Answers the code of the text.
local encoders = {}

local WHOLE = 'if %s %% 1 ~= 0 or %s >= 9007199254740992 or %s <= -9007199254740992 then return nil end'

function encoders.integer(writer, value)
    local code = value[1]
    if value[2] ~= 'number' then line(writer, format('if type(%s) ~= "number" then return nil end', code)) end
    if not value.bits or value.bits >= WHOLE_BITS then line(writer, format(WHOLE, code, code, code)) end
    return format('number(%s)', code)
end

function encoders.number(writer, value)
    line(writer, format('if type(%s) ~= "number" then return nil end', value[1]))
    return format('number(%s)', value[1])
end

function encoders.string(writer, value)
    line(writer, format('if type(%s) ~= "string" or #%s > %d then return nil end', value[1], value[1], writer.program.share))
    return value[1]
end

function encoders.boolean(writer, value)
    line(writer, format('if type(%s) ~= "boolean" then return nil end', value[1]))
    return format('%s and "true" or "false"', value[1])
end

-- Writes the stored text of an expression for a field. Answers the local that holds it.
function step_source.write_field(writer, field, node)
    local value, encode = write(node, writer), encoders[field.type]
    if not encode or value[2] == 'nil' then give_up(writer) end
    local raw = keep(writer, encode(writer, value), 'raw')
    writer.known[field.name] = { value[1], field.type == 'string' and 'text' or field.type == 'boolean' and 'boolean' or 'number',
        bits = field.type == 'integer' and WHOLE_BITS or nil }
    return raw[1]
end

-- Writes a literal for a field: its stored text is known.
function step_source.write_literal(writer, field, raw)
    local codes = CODES[field.type]
    if not codes then give_up(writer) end
    local quoted = quote(raw)
    writer.known[field.name] = { '(' .. format(codes[1], quoted) .. ')', codes[2], bits = codes[3] }
    return quoted
end

-- Forgets a field that an action removed.
function step_source.forget(writer, field) writer.known[field.name] = NIL end

return step_source
