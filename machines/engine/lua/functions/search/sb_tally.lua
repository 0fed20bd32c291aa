-- needs: arguments, data_indexes, failures, filters, json, keys, keyset_pages, replies, strings, time_limit
-- sb_tally: counts the instances a search finds, by leaf state, for as long as a call may take; a later one goes on.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 search (JSON {where, states, named, lead, before}): states in the order in which one that stands in several counts;
--          named: whether those were asked for, and are not just all there are; lead: the condition whose index is walked, else
--          the states are; before: entered at or before (ms) · 2 where an earlier call stopped ('' = at the beginning)
--          · 3 how many to look at (1..2000)
-- Returns: {OK, where it stopped ('' = at the end), how many were looked at, instances found, leaf, found there, ...}
--          · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(states + those looked at), for some 4 ms at most
local MAX_LOOK, BUDGET_MS, EVERY = 2000, 4, 16

local function leaves_of(row)
    local found, count = {}, 0
    for leaf in string.gmatch(row[2] or '', '[^\n]+') do found[leaf], count = true, count + 1 end
    return found, count
end

-- Nearly all stand in one leaf: which, or nil.
local function only_leaf(row)
    return row[2] and not string.find(row[2], '\n', 1, true) and row[2] or nil
end

-- Of the leaves an instance stands in, that by which it is counted as one.
local function counted(search, leaves)
    for _, state in ipairs(search.states) do
        if leaves[state] then return state end
    end
    local lowest
    for leaf in pairs(leaves) do
        if not lowest or strings.is_before(leaf, lowest) then lowest = leaf end
    end
    return lowest
end

local function add(tally, leaf, as_one)
    tally.counts[leaf] = (tally.counts[leaf] or 0) + 1
    if as_one then tally.total = tally.total + 1 end
end

local function entered_in_time(search, root, id, leaf, row, several)
    if not search.before or tonumber(row[3] or 0) <= search.before then return true end
    local score = several and redis.call('ZSCORE', keys.state(root, leaf), id)
    return score and tonumber(score) <= search.before
end

-- One that an index of data led to: every leaf it stands in.
local function add_all(search, tally, root, id, row)
    local only = only_leaf(row)
    if only then
        local wanted = not search.named or search.wanted[only]
        if wanted and entered_in_time(search, root, id, only, row) then add(tally, only, true) end
        return
    end
    local leaves, count = leaves_of(row)
    local one = counted(search, leaves)
    for leaf in pairs(leaves) do
        if (not search.named or search.wanted[leaf]) and entered_in_time(search, root, id, leaf, row, count > 1) then
            add(tally, leaf, leaf == one)
        end
    end
end

local function by_index(search, tally, root, position, look)
    local from, to = data_indexes.make_range(search.lead)
    if not from then return '' end
    from, to = data_indexes.narrow_range(from, to, data_indexes.from_hex(position) or '', false)
    local found = redis.call('ZRANGEBYLEX', keys.lookup(root, search.lead.field), from, to, 'LIMIT', 0, look)
    local several = search.lead.field == failures.FIELD
    for i, entry in ipairs(found) do
        local id = data_indexes.parse_id(entry)
        local row = filters.match(search.filter, root, id, several and entry)
        tally.looked = i
        if row then add_all(search, tally, root, id, row) end
        if i % tally.every == 0 and tally.over() and i < #found then return data_indexes.to_hex(entry) end
    end
    return #found < look and '' or data_indexes.to_hex(found[#found])
end

-- Counts in one state; answers where it stopped, nil at its end.
local function in_state(search, tally, root, state, cursor, look)
    local found = keyset_pages.read_ascending(keys.state(root, state), cursor, search.before or '+inf', look)
    for i = 1, #found, 2 do
        local row = filters.match(search.filter, root, found[i])
        tally.looked = tally.looked + 1
        if row then add(tally, state, only_leaf(row) == state or counted(search, leaves_of(row)) == state) end
        if tally.looked % tally.every == 0 and tally.over() then return found[i + 1], found[i] end
    end
    if #found == look * 2 then return found[#found], found[#found - 1] end
end

local function by_states(search, tally, root, stopped, look)
    local at, cursor = stopped[1], { score = stopped[2], id = stopped[3] }
    while search.states[at] do
        local score, id = in_state(search, tally, root, search.states[at], cursor, look - tally.looked)
        if score then return json.encode(json.list({ at, score, id })) end
        at, cursor = at + 1, { score = '', id = '' }
    end
    return ''
end

local function read(text)
    local ok, search = pcall(json.decode, text or '')
    if not ok or type(search) ~= 'table' then return nil, 'a search is a JSON object' end
    local why = filters.check_states(search.states) or search.lead and data_indexes.check_conditions({ search.lead })
    if search.before ~= nil and type(search.before) ~= 'number' then why = 'a moment is a number of ms' end
    if why then return nil, why end
    search.filter, why = filters.make(search.where, search.lead and search.named and search.states or nil)
    if why then return nil, why end
    search.wanted = {}
    for _, state in ipairs(search.states) do search.wanted[state] = true end
    return search
end

local function stopped_at(text)
    if text == '' then return { 1, '', '' } end
    local ok, found = pcall(json.decode, text)
    if not ok or type(found) ~= 'table' or type(found[1]) ~= 'number' or type(found[3]) ~= 'string' then return nil end
    return arguments.is_score(tostring(found[2])) and found or nil
end

return function(KEYS, ARGV)
    local root, look = KEYS[1], arguments.parse_count(ARGV[3], 1, MAX_LOOK)
    local search, bad = read(ARGV[1])
    local stopped = search and not search.lead and stopped_at(ARGV[2] or '')
    if not look then bad = 'how many to look at is 1 to ' .. MAX_LOOK end
    if search and not search.lead and not stopped then bad = 'where to go on is what an earlier call answered' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local every = search.filter and search.filter.reads_data and 1 or EVERY
    local tally = { counts = {}, total = 0, looked = 0, every = every, over = time_limit.start(BUDGET_MS) }
    local stop
    if search.lead then
        stop = by_index(search, tally, root, ARGV[2] or '', look)
    else
        stop = by_states(search, tally, root, stopped, look)
    end
    local reply = { replies.OK, stop, tally.looked, tally.total }
    for leaf, count in pairs(tally.counts) do
        reply[#reply + 1], reply[#reply + 2] = leaf, count
    end
    return reply
end
