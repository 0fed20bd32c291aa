-- needs: arguments, data_indexes, failures, filters, json, keys, keyset_pages, replies, strings, time_limit
-- sb_tally: counts the instances that a search finds, by leaf state, within the time of a call; a later call continues.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 search (JSON {where, states, named, lead, before}): states in the order in which an instance in several counts;
--          named: whether these were asked for, instead of all states; lead: the condition whose index is walked, else the
--          states are; before: entered at or before (ms) · 2 cursor of an earlier call ('' = from the beginning) · 3 how
--          many to check (1..2000)
-- Returns: {OK, next cursor ('' = at the end), how many were checked, instances found, leaf, found there, ...} · {NOMACHINE}
--          · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(states + those checked), for some ms at most
local MAX_LOOK, EVERY = 2000, 16

local function parse_leaves(row)
    local found, count = {}, 0
    for leaf in string.gmatch(row[2] or '', '[^\n]+') do found[leaf], count = true, count + 1 end
    return found, count
end

-- Answers the leaf of an instance in a single one, as nearly all are; else nil.
local function parse_single_leaf(row)
    return row[2] and not string.find(row[2], '\n', 1, true) and row[2] or nil
end

-- Chooses the leaf by which an instance in several counts once.
local function choose_leaf(search, leaves)
    for _, state in ipairs(search.states) do
        if leaves[state] then return state end
    end
    local lowest
    for leaf in pairs(leaves) do
        if not lowest or strings.is_before(leaf, lowest) then lowest = leaf end
    end
    return lowest
end

local function count_in_leaf(tally, leaf, as_one)
    tally.counts[leaf] = (tally.counts[leaf] or 0) + 1
    if as_one then tally.total = tally.total + 1 end
end

local function is_in_time(search, root, id, leaf, row, several)
    if not search.before or tonumber(row[3] or 0) <= search.before then return true end
    local score = several and redis.call('ZSCORE', keys.state(root, leaf), id)
    return score and tonumber(score) <= search.before
end

-- Counts an instance that an index led to, in every leaf it is in.
local function count_instance(search, tally, root, id, row)
    local only = parse_single_leaf(row)
    if only then
        local wanted = not search.named or search.wanted[only]
        if wanted and is_in_time(search, root, id, only, row) then count_in_leaf(tally, only, true) end
        return
    end
    local leaves, count = parse_leaves(row)
    local one = choose_leaf(search, leaves)
    for leaf in pairs(leaves) do
        if (not search.named or search.wanted[leaf]) and is_in_time(search, root, id, leaf, row, count > 1) then
            count_in_leaf(tally, leaf, leaf == one)
        end
    end
end

-- Answers the only leaf of an instance that the index alone decides about; nil where more has to be read.
local function read_single_leaf(search, root, id)
    if search.named or search.before or search.filter.where[1] then return nil end
    local text = redis.pcall('HGET', keys.instance(root, id), '_state')
    return type(text) == 'string' and not string.find(text, '\n', 1, true) and text or nil
end

local function count_by_index(search, tally, root, position, look)
    local from, to = data_indexes.make_range(search.lead)
    if not from then return '' end
    from, to = data_indexes.narrow_range(from, to, data_indexes.from_hex(position) or '', false)
    local found = redis.call('ZRANGEBYLEX', keys.lookup(root, search.lead.field), from, to, 'LIMIT', 0, look)
    local several = search.lead.field == failures.FIELD
    for i, entry in ipairs(found) do
        local id = data_indexes.parse_id(entry)
        local leaf = read_single_leaf(search, root, id)
        local row = not leaf and filters.match(search.filter, root, id, several and entry)
        tally.looked = i
        if leaf then
            count_in_leaf(tally, leaf, true)
        elseif row then
            count_instance(search, tally, root, id, row)
        end
        if i % tally.every == 0 and tally.is_over() and i < #found then return data_indexes.to_hex(entry) end
    end
    return #found < look and '' or data_indexes.to_hex(found[#found])
end

-- Counts in one state; answers where it stopped, nil at its end.
local function count_in_state(search, tally, root, state, cursor, look)
    local found = keyset_pages.read_ascending(keys.state(root, state), cursor, search.before or '+inf', look)
    for i = 1, #found, 2 do
        local row = filters.match(search.filter, root, found[i])
        tally.looked = tally.looked + 1
        if row then
            local as_one = parse_single_leaf(row) == state or choose_leaf(search, parse_leaves(row)) == state
            count_in_leaf(tally, state, as_one)
        end
        if tally.looked % tally.every == 0 and tally.is_over() then return found[i + 1], found[i] end
    end
    if #found == look * 2 then return found[#found], found[#found - 1] end
end

local function count_by_states(search, tally, root, stopped, look)
    local at, cursor = stopped[1], { score = stopped[2], id = stopped[3] }
    while search.states[at] do
        local score, id = count_in_state(search, tally, root, search.states[at], cursor, look - tally.looked)
        if score then return json.encode(json.list({ at, score, id })) end
        at, cursor = at + 1, { score = '', id = '' }
    end
    return ''
end

local function parse(text)
    local ok, search = pcall(json.decode, text or '')
    arguments.need(ok and type(search) == 'table', 'a search is a JSON object')
    arguments.refuse(filters.check_states(search.states) or search.lead and data_indexes.check_conditions({ search.lead }))
    arguments.need(search.before == nil or type(search.before) == 'number', 'a time is a number of ms')
    search.filter = filters.make(search.where, search.lead and search.named and search.states or nil)
    search.wanted = {}
    for _, state in ipairs(search.states) do search.wanted[state] = true end
    return search
end

local function parse_cursor(text)
    if text == '' then return { 1, '', '' } end
    local ok, found = pcall(json.decode, text)
    if not ok or type(found) ~= 'table' or type(found[1]) ~= 'number' or type(found[3]) ~= 'string' then return nil end
    return arguments.is_score(tostring(found[2])) and found or nil
end

return function(KEYS, ARGV)
    local root, look = KEYS[1], arguments.parse_count(ARGV[3], 1, MAX_LOOK)
    arguments.need(look, 'how many to check is 1 to ' .. MAX_LOOK)
    local search = parse(ARGV[1])
    local stopped = not search.lead and parse_cursor(ARGV[2] or '')
    arguments.need(search.lead or stopped, 'a cursor is what an earlier call answered')
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local every = search.filter.every or search.filter.reads_data and 1 or EVERY
    local tally = { counts = {}, total = 0, looked = 0, every = every, is_over = time_limit.start() }
    local stop
    if search.lead then
        stop = count_by_index(search, tally, root, ARGV[2] or '', look)
    else
        stop = count_by_states(search, tally, root, stopped, look)
    end
    local reply = { replies.OK, stop, tally.looked, tally.total }
    for leaf, count in pairs(tally.counts) do
        reply[#reply + 1], reply[#reply + 2] = leaf, count
    end
    return reply
end
