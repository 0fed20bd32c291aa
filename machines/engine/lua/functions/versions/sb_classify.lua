-- needs: arguments, fleet_classes, json, keys, keyset_pages, replies, strings, time_limit
-- sb_classify: tells what a migration plan would do with the instances of a partition, by class; one page of a dry run.
-- flags:   no-writes
-- KEYS:    1 root of the partition
-- ARGV:    1 walk (classes of a page) | list (only the ids of a page) | ids (classes of these) · 2 program of the plan (JSON,
--          or a JSON list of several as texts; '' for list) · 3 name of the dry run · 4 cursor of an earlier call ('' = from
--          the beginning); for ids, the first id, then further ones · 5 for walk and list, entered since (ms, '' = any time)
-- Returns: {OK, next cursor ('' = at the end; of ids: how many were done), us that the call took, ms at its begin, instances of
--          the partition, class (JSON), {id, ...}, class, {...}, ...}, of list ids in place of classes; an instance in several
--          regions is found by the first of its leaves, and by each in list · {STALE, why}: a version of the plan is not
--          published here with this content · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(states + log(instances in a state) + those on the page), for some ms
local EVERY, CHUNK, LISTED = 8, 64, 10000

-- Tells whether this is the leaf by which an instance counts: the first of its configuration.
local function is_first_leaf(state, configuration)
    return configuration == state or string.match(configuration, '^[^\n]*') == state
end

local function add_class(page, text, id)
    local ids = page.classes[text]
    if not ids then
        ids = {}
        page.classes[text], page.order[#page.order + 1] = ids, text
    end
    ids[#ids + 1] = id
end

local function classify(page, id, state)
    local text, configuration = fleet_classes.find(page.fleet, id)
    if text and (not state or not configuration or is_first_leaf(state, configuration)) then add_class(page, text, id) end
end

local function take(page, id, state)
    page.looked = page.looked + 1
    if page.fleet then classify(page, id, state) else page.ids[#page.ids + 1] = id end
    if page.fleet then return page.looked % EVERY == 0 and page.is_over() end
    return page.looked >= LISTED or page.looked % CHUNK == 0 and page.is_over()
end

-- Walks the index of one state; answers score and id where the call ended, nil at the end of the state.
local function walk_state(page, root, state, cursor)
    local index = keys.state(root, state)
    local first = keyset_pages.count_passed(index, cursor)
    while true do
        local found = redis.call('ZRANGE', index, first, first + CHUNK - 1, 'WITHSCORES')
        for i = 1, #found, 2 do
            if take(page, found[i], state) then return found[i + 1], found[i] end
        end
        if #found < 2 * CHUNK then return nil end
        first = first + CHUNK
    end
end

-- Lists the states of all versions from one on, in the order of their bytes.
local function list_states(root, from)
    local found = {}
    for _, state in ipairs(redis.call('SMEMBERS', keys.states(root))) do
        if not strings.is_before(state, from) then found[#found + 1] = state end
    end
    strings.sort(found)
    return found
end

local function walk(page, root, stopped, since)
    for _, state in ipairs(list_states(root, stopped[1])) do
        local cursor = state == stopped[1] and { score = stopped[2], id = stopped[3] } or { score = since, id = '' }
        local score, id = walk_state(page, root, state, cursor)
        if score then return json.encode(json.list({ state, score, id })) end
    end
    return ''
end

local function parse_cursor(text)
    if text == '' then return { '' } end
    local ok, found = pcall(json.decode, text)
    local fits = ok and type(found) == 'table'
    for i = 1, 3 do fits = fits and type(found[i]) == 'string' end
    arguments.need(fits and arguments.is_score(found[2]), 'a cursor is what an earlier call answered')
    return found
end

-- Classifies these ids; answers how many were done.
local function classify_ids(page, ids)
    for i = 4, #ids do
        if take(page, ids[i]) and i < #ids then return tostring(i - 3) end
    end
    return tostring(#ids - 3)
end

local function run(page, root, ARGV)
    if ARGV[1] == 'ids' then return classify_ids(page, ARGV) end
    local since = ARGV[5] or ''
    arguments.need(arguments.is_score(since), 'a time is a number of ms')
    return walk(page, root, parse_cursor(ARGV[4] or ''), since)
end

local function add_classes(reply, page)
    for _, text in ipairs(page.order) do
        reply[#reply + 1], reply[#reply + 2] = text, page.classes[text]
    end
    for _, id in ipairs(page.ids) do reply[#reply + 1] = id end
    return reply
end

return function(KEYS, ARGV)
    local root, what = KEYS[1], ARGV[1]
    local elapsed, now = time_limit.measure(), arguments.read_now('')
    arguments.need(what == 'walk' or what == 'list' or what == 'ids', 'a page is of walk, list or ids')
    local meta = redis.call('HMGET', keys.meta(root), 'current', 'instances')
    if not meta[1] then return { replies.NO_MACHINE } end
    local fleet, why, is_stale
    if what ~= 'list' then
        fleet, why, is_stale = fleet_classes.open(root, ARGV[2] or '', ARGV[3] or '')
        if not fleet then return { is_stale and replies.STALE or replies.BAD_ARGUMENT, why } end
    end
    local page = { fleet = fleet, ids = {}, classes = {}, order = {}, looked = 0, is_over = time_limit.start() }
    local reply = { replies.OK, run(page, root, ARGV), '', string.format('%d', now), meta[2] or '0' }
    add_classes(reply, page)
    reply[3] = string.format('%d', elapsed() * 1000)
    return reply
end
