-- needs: json, strings, values
-- A state machine under a key of the caller's own, as the SM commands know it: which state leads to which (`map`), where
-- it stands (`current`) and begins (`initial`), and the last word on why (`reason`). It is a hash of these four; a fifth
-- field says that it is one, and in which layout.
local state_machine = {}

local LAYOUT = '1'
local MAX_JSON = 131072 -- bytes of one machine
local MAX_TEXT = 4000 -- bytes of a reason or the name of a state: a thousand characters of any alphabet
local MAX_KEPT = 524288 -- bytes of the maps whose meaning is kept from call to call
local MAX_SHOWN = 60 -- bytes of a name in an error
local MAX_LISTED = 8 -- states in an error
local WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'

local find, upper = string.find, string.upper

local function failure(...)
    return redis.error_reply('ERR ' .. table.concat({ ... }))
end

local function shown(name)
    return "'" .. strings.cut(name, MAX_SHOWN) .. (#name > MAX_SHOWN and '...' or '') .. "'"
end

-- An error when a command was not called as `usage` says: its name, its key, and more words, optional ones in brackets.
function state_machine.misuse(usage, KEYS, ARGV)
    local command, takes = string.match(usage, '^(%S+) ?(.*)$')
    local given, least, most = #KEYS + #ARGV, 0, 0
    for word in string.gmatch(takes, '%S+') do
        most = most + 1
        if not find(word, '^%[') then least = least + 1 end
    end
    if #KEYS == math.min(most, 1) and given >= least and given <= most then return nil end
    return failure("wrong number of arguments for '", command, "' command; it takes ", most > 0 and takes or 'none')
end

-- Is this word the option, in whatever case?
function state_machine.is_option(word, option)
    return upper(word) == option
end

-- An error about a text that cannot stand in a machine's JSON, or nil.
function state_machine.bad_text(text, what)
    if #text > MAX_TEXT then return failure(what, ' has at most ', MAX_TEXT, ' bytes, not ', #text) end
    if find(text, '%z') or not strings.valid(text) then return failure(what, ' is UTF-8 without NUL') end
    return nil
end

-- A sentence about what is wrong with a decoded map, or nil.
local function bad_map(map)
    if values.kind(map) ~= 'object' then return "'map' is an object, not " .. values.kind(map) end
    for state, targets in pairs(map) do
        if values.kind(targets) ~= 'array' then
            return "'map' leads from " .. shown(state) .. ' to a list of states, not to ' .. values.kind(targets)
        end
        for _, target in ipairs(targets) do
            if type(target) ~= 'string' then
                return "'map' leads from " .. shown(state) .. ' to a ' .. values.kind(target) .. ', and states are strings'
            end
        end
    end
    return nil
end

-- Thousands of machines are made of one map, and reading it takes longer than all else: by its text, once.
local meanings, kept = {}, 0

local function meaning(text)
    local known = meanings[text]
    if known then return known end
    if #text > MAX_JSON or not strings.valid(text) then return nil, "'map' is JSON of at most " .. MAX_JSON .. ' bytes' end
    local ok, map = pcall(json.decode, text)
    local bad = not ok and "'map' is " .. values.message(map) or bad_map(map)
    if bad then return nil, bad end
    if kept + #text > MAX_KEPT then meanings, kept = {}, 0 end
    meanings[text], kept = map, kept + #text
    return map
end

-- What stands at a key that has no mark of ours: false for nothing at all, else the error of another type.
local function another(key)
    if redis.call('EXISTS', key) == 0 then return false end
    return redis.error_reply(WRONG_TYPE .. ': this hash is no state machine')
end

-- The machine at a key. Where there is none: nil, and what to answer (false is the nil of a missing key).
function state_machine.read(key)
    local held = redis.pcall('HMGET', key, '_sm', 'current', 'initial', 'reason', 'map')
    if held.err then return nil, held end
    if not held[1] then return nil, another(key) end
    if held[1] ~= LAYOUT then
        return nil, failure('this state machine is kept in layout ', shown(held[1]), '; this library knows ', LAYOUT)
    end
    local machine = { current = held[2], initial = held[3], reason = held[4], text = held[5] }
    for name, field in pairs(machine) do
        if not field or not strings.valid(field) then
            return nil, failure("this state machine was damaged: its field '", name == 'text' and 'map' or name,
                "' is missing or not UTF-8")
        end
    end
    local map, bad = meaning(machine.text)
    if not map then return nil, failure('this state machine was damaged: ', bad) end
    machine.map = map
    return machine
end

-- Keeps a machine under a key, in place of one that may be there and of its time to live. Replies OK, or the error of a
-- key of another type.
function state_machine.keep(key, machine)
    local mark = redis.pcall('HGET', key, '_sm')
    if type(mark) == 'table' then return mark end
    local problem = not mark and another(key)
    if problem then return problem end
    redis.call('HSET', key, '_sm', LAYOUT, 'current', machine.current, 'initial', machine.initial, 'reason',
        machine.reason, 'map', machine.text)
    redis.call('PERSIST', key)
    return redis.status_reply('OK')
end

function state_machine.blank()
    return { current = '', initial = '', reason = '', text = '{}', map = {} }
end

-- The machine as JSON, its fields in the order the module writes them in.
function state_machine.written(machine)
    return table.concat({
        '{"current":', json.quote(machine.current), ',"map":', machine.text, ',"initial":', json.quote(machine.initial),
        ',"reason":', json.quote(machine.reason), '}',
    })
end

local FIELDS = { 'current', 'map', 'initial', 'reason' }
local WANTED = 'a state machine is a JSON object with current, map, initial and reason'

local function bad_fields(found)
    if values.kind(found) ~= 'object' then return failure(WANTED, '; this is ', values.kind(found)) end
    for _, name in ipairs(FIELDS) do
        if found[name] == nil then return failure(WANTED, "; '", name, "' is missing") end
    end
    for _, name in ipairs({ 'current', 'initial', 'reason' }) do
        if type(found[name]) ~= 'string' then
            return failure(WANTED, "; '", name, "' is a string, not ", values.kind(found[name]))
        end
        local bad = state_machine.bad_text(found[name], "'" .. name .. "'")
        if bad then return bad end
    end
    local bad = bad_map(found.map)
    return bad and failure(WANTED, '; ', bad)
end

-- A machine from its JSON; nil and an error where that is none. `current` counts more than the JSON's, unless it is
-- empty; where both are, the machine stands where it begins.
function state_machine.parsed(text, current)
    if #text > MAX_JSON then
        return nil, failure('a state machine has at most ', MAX_JSON, ' bytes of JSON, not ', #text)
    end
    if not strings.valid(text) then return nil, failure('a state machine is JSON in UTF-8') end
    local ok, found = pcall(json.decode, text)
    if not ok then return nil, failure(values.message(found)) end
    local bad = bad_fields(found) or state_machine.bad_text(current, 'a state')
    if bad then return nil, bad end
    if current == '' then current = found.current end
    if current == '' then current = found.initial end
    local map = json.encode(found.map)
    if #map > MAX_JSON then return nil, failure("'map' has at most ", MAX_JSON, ' bytes of JSON, not ', #map) end
    return { current = current, initial = found.initial, reason = found.reason, text = map }
end

-- The keys of the map, in the order of their bytes.
function state_machine.states(machine)
    local names = {}
    for name in pairs(machine.map) do names[#names + 1] = name end
    table.sort(names, strings.before)
    return names
end

local function leads(machine, target)
    for _, name in ipairs(machine.map[machine.current] or {}) do
        if name == target then return true end
    end
    return false
end

local function onward(machine)
    local targets, names = machine.map[machine.current] or {}, {}
    for i = 1, math.min(#targets, MAX_LISTED) do names[i] = shown(targets[i]) end
    if #targets > MAX_LISTED then names[#names + 1] = '...' end
    return #names == 0 and 'nothing' or table.concat(names, ', ')
end

-- An error when a machine may not go to a state, or nil. A state is a key of the map: nothing forces it anywhere else.
function state_machine.refusal(machine, target, option)
    if not machine.map[target] then
        return failure('invalid state transition: ', shown(target), ' is no key of the map')
    end
    if option then
        if state_machine.is_option(option, 'FORCE') then return nil end
        return failure('invalid command option ', shown(option), '; after the reason comes FORCE, or nothing')
    end
    if leads(machine, target) then return nil end
    return failure('invalid state transition: ', shown(machine.current), ' does not lead to ', shown(target), '; it leads to ',
        onward(machine))
end

return state_machine
