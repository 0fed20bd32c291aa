-- What the person behind a call may do, judged inside the step that commits: which groups they are in, and what a second
-- person has approved. A call without a permit is a program's, and no rule for people holds for it.
-- Pure: `chart` and `core` ask here before they take the transitions that an event selects.
local permits = {}

local MAX_BYTES = 65536
local PERMIT = { groups = true, approved = true }
local APPROVED = { action = true, by = true, definition = true, transitions = true }

local last_text, last_permit -- a batch carries the same permit with each of its events

-- What a definition asks a second person for: repairs by name, and events.
function permits.compile(names)
    if not names or not names[1] then return nil end
    local asks = { actions = {}, events = {} }
    for _, name in ipairs(names) do
        local event = string.match(name, '^fire:(.+)$')
        if event then table.insert(asks.events, event) else asks.actions[name] = true end
    end
    return asks
end

-- As a transition on `door` listens for `door.open` too.
local function asks_for(asks, action)
    if asks.actions[action] then return true end
    local event = string.match(action, '^fire:(.+)$')
    if not event then return false end
    for _, named in ipairs(asks.events) do
        if event == named or string.sub(event, 1, #named + 1) == named .. '.' then return true end
    end
    return false
end

local function unknown(found, allowed)
    for name in pairs(found) do
        if not allowed[name] then return tostring(name) end
    end
end

-- The texts of a list, and those texts as a set; nil where it is none.
local function texts(value)
    if type(value) ~= 'table' then return nil end
    local listed, set = {}, {}
    for i, text in pairs(value) do
        if type(i) ~= 'number' or type(text) ~= 'string' then return nil end
        listed[i], set[text] = text, true
    end
    return listed, set
end

-- Adds what a second person has approved; answers nil, or a sentence about what does not fit.
local function read_approved(permit, approved)
    if approved == nil or approved == cjson.null then return nil end
    local stranger = type(approved) == 'table' and unknown(approved, APPROVED)
    if type(approved) ~= 'table' or stranger then
        return 'a permit says of what was approved action, by, definition and transitions'
            .. (stranger and ', not ' .. stranger or '')
    end
    if type(approved.action) ~= 'string' or type(approved.by) ~= 'string' or approved.by == '' then
        return 'a permit names the action that was approved, and by whom, both as text'
    end
    permit.action, permit.by = approved.action, approved.by
    if approved.definition ~= nil and type(approved.definition) ~= 'number' then
        return 'the definition in a permit is the number of a version'
    end
    permit.definition = approved.definition
    if approved.transitions == nil then return nil end
    local listed = texts(approved.transitions)
    if not listed then return 'the transitions in a permit are a list of ids' end
    permit.transitions = table.concat(listed, ' ')
    return nil
end

-- {groups = set, or nil for any; action, by, definition, transitions of what was approved}; nil and a sentence.
local function read(text)
    if #text > MAX_BYTES then return nil, 'a permit has at most ' .. MAX_BYTES .. ' bytes, not ' .. #text end
    local ok, found = pcall(cjson.decode, text)
    if not ok or type(found) ~= 'table' then
        return nil, 'a permit is a JSON object with groups (a list, or null for any) and approved'
    end
    local stranger = unknown(found, PERMIT)
    if stranger then return nil, 'a permit has groups and approved, not ' .. stranger end
    local permit, _ = {}, nil
    if found.groups ~= cjson.null then
        _, permit.groups = texts(found.groups)
        if not permit.groups then return nil, 'the groups in a permit are a list of names, or null for any' end
    end
    local why = read_approved(permit, found.approved)
    if why then return nil, why end
    return permit
end

-- From here on the step is held to what `text` permits; nothing, or a sentence about what is wrong with it. A definition
-- without rules for people does not look at it.
function permits.carry(ctx, text, actor)
    local compiled = ctx.program
    if not compiled.guarded and not compiled.approval then return nil end
    local permit = last_permit
    if text ~= last_text then
        local why
        permit, why = read(text)
        if not permit then return why end
        last_text, last_permit = text, permit
    end
    if permit.by and permit.by == actor then return 'nobody is their own second person: ' .. actor end
    ctx.permit = permit
    return nil
end

local function is_member(groups, allowed)
    for i = 1, #allowed do
        if groups[allowed[i]] then return true end
    end
    return false
end

-- Is one of the transitions that an event selects, in whichever region, for groups that the person is not in? Then
-- `ctx.barred` is the first of them, and none is to be taken.
function permits.bars(ctx, transitions)
    local groups = ctx.permit.groups
    ctx.selected = transitions
    if not groups then return false end
    for i = 1, #transitions do
        local allowed = transitions[i].allow
        if allowed and not is_member(groups, allowed) then
            ctx.barred = transitions[i]
            return true
        end
    end
    return false
end

-- Ids of the transitions that the event selected, between spaces.
function permits.selected(ctx)
    local ids = {}
    for i, transition in ipairs(ctx.selected or {}) do ids[i] = transition.id end
    return table.concat(ids, ' ')
end

-- Does the definition ask a second person for the action, and is it not this very thing that one has approved?
function permits.lacks_second(ctx, action)
    local permit, asks = ctx.permit, ctx.program.approval
    if not permit or not asks or not asks_for(asks, action) then return false end
    if permit.action ~= action then return true end
    if permit.definition and permit.definition ~= tonumber(ctx.program.version) then return true end
    return permit.transitions ~= nil and permit.transitions ~= permits.selected(ctx)
end

return permits
