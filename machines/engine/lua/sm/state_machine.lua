-- needs: json, strings, values
-- A state machine under a key of the caller's own, as the SM commands define it: which state leads to which (`map`), the
-- state it is in (`current`), its first state (`initial`), and the latest reason (`reason`). It is a hash of these four
-- fields; a fifth one marks it and names the layout.
local state_machine = {}

local LAYOUT = '1'
local MAX_JSON = 131072 -- bytes of one machine
local MAX_TEXT = 4000 -- bytes of a reason or a state's name: a thousand characters of any alphabet
local MAX_CACHED = 524288 -- bytes of the maps that are cached between calls
local MAX_SHOWN = 60 -- bytes of a name in an error
local MAX_LISTED = 8 -- states in an error
local WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'

local find, upper = string.find, string.upper

-- Ends the command with an error.
local function fail(...)
    error(redis.error_reply('ERR ' .. table.concat({ ... })))
end

local function quote_name(name)
    return "'" .. strings.cut_head(name, MAX_SHOWN) .. (#name > MAX_SHOWN and '...' or '') .. "'"
end

-- Ends a command that was not called as `usage` says: its name, its key, and further arguments, optional ones in brackets.
function state_machine.check_usage(usage, KEYS, ARGV)
    local command, takes = string.match(usage, '^(%S+) ?(.*)$')
    local given, least, most = #KEYS + #ARGV, 0, 0
    for word in string.gmatch(takes, '%S+') do
        most = most + 1
        if not find(word, '^%[') then least = least + 1 end
    end
    if #KEYS == math.min(most, 1) and given >= least and given <= most then return end
    fail("wrong number of arguments for '", command, "' command; it takes ", most > 0 and takes or 'none')
end

-- Tells whether an argument is the option, in any case.
function state_machine.is_option(word, option)
    return upper(word) == option
end

-- Refuses a text that a machine's JSON cannot hold.
function state_machine.check_text(text, what)
    if #text > MAX_TEXT then fail(what, ' has at most ', MAX_TEXT, ' bytes, not ', #text) end
    if find(text, '%z') or not strings.is_valid(text) then fail(what, ' is UTF-8 without NUL') end
end

-- Answers a sentence about what is wrong with a decoded map, or nil.
local function check_map(map)
    if values.kind_of(map) ~= 'object' then return "'map' is an object, not " .. values.kind_of(map) end
    for state, targets in pairs(map) do
        if values.kind_of(targets) ~= 'array' then
            return "'map' leads from " .. quote_name(state) .. ' to a list of states, not to ' .. values.kind_of(targets)
        end
        for _, target in ipairs(targets) do
            if type(target) ~= 'string' then
                local kind = values.kind_of(target)
                return "'map' leads from " .. quote_name(state) .. ' to a ' .. kind .. ', and states are strings'
            end
        end
    end
    return nil
end

-- Thousands of machines share one map, and decoding it is the most expensive part: cached by its text.
local maps, map_bytes = {}, 0

local function parse_map(text)
    local known = maps[text]
    if known then return known end
    if #text > MAX_JSON or not strings.is_valid(text) then return nil, "'map' is JSON of at most " .. MAX_JSON .. ' bytes' end
    local ok, map = pcall(json.decode, text)
    local bad = not ok and "'map' is " .. values.describe_error(map) or check_map(map)
    if bad then return nil, bad end
    if map_bytes + #text > MAX_CACHED then maps, map_bytes = {}, 0 end
    maps[text], map_bytes = map, map_bytes + #text
    return map
end

-- Refuses a key without the mark that exists.
local function check_other_type(key)
    if redis.call('EXISTS', key) == 1 then error(redis.error_reply(WRONG_TYPE .. ': this hash is no state machine')) end
end

-- Reads the machine at a key; nil for a missing key.
function state_machine.read(key)
    local held = redis.call('HMGET', key, '_sm', 'current', 'initial', 'reason', 'map')
    if not held[1] then return check_other_type(key) end
    if held[1] ~= LAYOUT then
        fail('this state machine is kept in layout ', quote_name(held[1]), '; this library knows ', LAYOUT)
    end
    local machine = { current = held[2], initial = held[3], reason = held[4], text = held[5] }
    for name, field in pairs(machine) do
        if not field or not strings.is_valid(field) then
            local shown = name == 'text' and 'map' or name
            fail("this state machine was damaged: its field '", shown, "' is missing or not UTF-8")
        end
    end
    local map, bad = parse_map(machine.text)
    if not map then fail('this state machine was damaged: ', bad) end
    machine.map = map
    return machine
end

-- Stores a machine under a key, without a time to live, in place of an earlier one; refuses a key of another type.
function state_machine.store(key, machine)
    if not redis.call('HGET', key, '_sm') then check_other_type(key) end
    redis.call('HSET', key, '_sm', LAYOUT, 'current', machine.current, 'initial', machine.initial, 'reason',
        machine.reason, 'map', machine.text)
    redis.call('PERSIST', key)
    return redis.status_reply('OK')
end

function state_machine.make_blank()
    return { current = '', initial = '', reason = '', text = '{}', map = {} }
end

-- Encodes the machine as JSON, with the fields in the order of the redis-state-machine module.
function state_machine.encode(machine)
    return table.concat({
        '{"current":', json.quote(machine.current), ',"map":', machine.text, ',"initial":', json.quote(machine.initial),
        ',"reason":', json.quote(machine.reason), '}',
    })
end

local FIELDS = { 'current', 'map', 'initial', 'reason' }
local WANTED = 'a state machine is a JSON object with current, map, initial and reason'

local function check_fields(found)
    if values.kind_of(found) ~= 'object' then fail(WANTED, '; this is ', values.kind_of(found)) end
    for _, name in ipairs(FIELDS) do
        if found[name] == nil then fail(WANTED, "; '", name, "' is missing") end
    end
    for _, name in ipairs({ 'current', 'initial', 'reason' }) do
        if type(found[name]) ~= 'string' then fail(WANTED, "; '", name, "' is a string, not ", values.kind_of(found[name])) end
        state_machine.check_text(found[name], "'" .. name .. "'")
    end
    local bad = check_map(found.map)
    if bad then fail(WANTED, '; ', bad) end
end

-- Parses a machine from JSON. `current` overrides the JSON's, unless it is empty; where
-- both are, the machine is in its initial state.
function state_machine.parse(text, current)
    if #text > MAX_JSON then fail('a state machine has at most ', MAX_JSON, ' bytes of JSON, not ', #text) end
    if not strings.is_valid(text) then fail('a state machine is JSON in UTF-8') end
    local ok, found = pcall(json.decode, text)
    if not ok then fail(values.describe_error(found)) end
    check_fields(found)
    state_machine.check_text(current, 'a state')
    if current == '' then current = found.current end
    if current == '' then current = found.initial end
    local map = json.encode(found.map)
    if #map > MAX_JSON then fail("'map' has at most ", MAX_JSON, ' bytes of JSON, not ', #map) end
    return { current = current, initial = found.initial, reason = found.reason, text = map }
end

-- Lists the keys of the map in the order of their bytes.
function state_machine.list_states(machine)
    local names = {}
    for name in pairs(machine.map) do names[#names + 1] = name end
    table.sort(names, strings.is_before)
    return names
end

local function leads_to(machine, target)
    for _, name in ipairs(machine.map[machine.current] or {}) do
        if name == target then return true end
    end
    return false
end

local function describe_targets(machine)
    local targets, names = machine.map[machine.current] or {}, {}
    for i = 1, math.min(#targets, MAX_LISTED) do names[i] = quote_name(targets[i]) end
    if #targets > MAX_LISTED then names[#names + 1] = '...' end
    return #names == 0 and 'nothing' or table.concat(names, ', ')
end

-- Refuses a state that the machine may not move to. A state is a key of the map, also with FORCE.
function state_machine.check_transition(machine, target, option)
    if not machine.map[target] then fail('invalid state transition: ', quote_name(target), ' is no key of the map') end
    if option and not state_machine.is_option(option, 'FORCE') then
        fail('invalid command option ', quote_name(option), '; after the reason comes FORCE, or nothing')
    end
    if option or leads_to(machine, target) then return end
    fail('invalid state transition: ', quote_name(machine.current), ' does not lead to ', quote_name(target), '; it leads to ',
        describe_targets(machine))
end

return state_machine
