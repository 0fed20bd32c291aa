-- What the person behind a call may do, checked inside the step that commits: the person's groups, and what a second person
-- has approved. A call without a permit is a program's, to which no rule for people applies. Pure: `chart` checks
-- here before it takes the selected transitions.
local permits = {}

local MAX_BYTES = 65536
local PERMIT = { groups = true, approved = true }
local APPROVED = { action = true, by = true, definition = true, transitions = true }

local last_text, last_permit -- a batch has the same permit for each of its events

-- Compiles the actions that need an approval: repairs by name, and events.
function permits.compile(names)
    if not names or not names[1] then return nil end
    local rules = { actions = {}, events = {} }
    for _, name in ipairs(names) do
        local event = string.match(name, '^fire:(.+)$')
        if event then table.insert(rules.events, event) else rules.actions[name] = true end
    end
    return rules
end

-- Like a transition, a rule for `door` applies to `door.open`, too.
local function is_listed(rules, action)
    if rules.actions[action] then return true end
    local event = string.match(action, '^fire:(.+)$')
    if not event then return false end
    for _, listed in ipairs(rules.events) do
        if event == listed or string.sub(event, 1, #listed + 1) == listed .. '.' then return true end
    end
    return false
end

local function find_unknown(found, allowed)
    for name in pairs(found) do
        if not allowed[name] then return tostring(name) end
    end
end

-- Answers the texts of a list, and the same as a set; nil when it is no list of texts.
local function read_texts(value)
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
    local unknown_name = type(approved) == 'table' and find_unknown(approved, APPROVED)
    if type(approved) ~= 'table' or unknown_name then
        return 'a permit says of what was approved action, by, definition and transitions'
            .. (unknown_name and ', not ' .. unknown_name or '')
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
    local listed = read_texts(approved.transitions)
    if not listed then return 'the transitions in a permit are a list of ids' end
    permit.transitions = table.concat(listed, ' ')
    return nil
end

-- Parses {groups = set, or nil for any; action, by, definition, transitions of the approval}; nil and a sentence.
local function parse(text)
    if #text > MAX_BYTES then return nil, 'a permit has at most ' .. MAX_BYTES .. ' bytes, not ' .. #text end
    local ok, found = pcall(cjson.decode, text)
    if not ok or type(found) ~= 'table' then
        return nil, 'a permit is a JSON object with groups (a list, or null for any) and approved'
    end
    local unknown_name = find_unknown(found, PERMIT)
    if unknown_name then return nil, 'a permit has groups and approved, not ' .. unknown_name end
    local permit, _ = {}, nil
    if found.groups ~= cjson.null then
        _, permit.groups = read_texts(found.groups)
        if not permit.groups then return nil, 'the groups in a permit are a list of names, or null for any' end
    end
    local why = read_approved(permit, found.approved)
    if why then return nil, why end
    return permit
end

-- Reads the permit `text` into the context, whose step it then limits; answers nil, or a sentence about what is wrong with
-- it. A definition without rules for people ignores it.
function permits.read(ctx, text, actor)
    local compiled = ctx.program
    if not compiled.has_allow and not compiled.approval then return nil end
    local permit = last_permit
    if text ~= last_text then
        local why
        permit, why = parse(text)
        if not permit then return why end
        last_text, last_permit = text, permit
    end
    if permit.by and permit.by == actor then return 'the second person must be another one than ' .. actor end
    ctx.permit = permit
    return nil
end

local function is_member(groups, allowed)
    for i = 1, #allowed do
        if groups[allowed[i]] then return true end
    end
    return false
end

-- Tells whether one of the selected transitions, in any region, is reserved for groups that the person is not in. Then
-- `ctx.not_allowed` is the first of them, and none may be taken.
function permits.is_barred(ctx, transitions)
    local groups = ctx.permit.groups
    ctx.selected = transitions
    if not groups then return false end
    for i = 1, #transitions do
        local allowed = transitions[i].allow
        if allowed and not is_member(groups, allowed) then
            ctx.not_allowed = transitions[i]
            return true
        end
    end
    return false
end

-- Joins the ids of the selected transitions with spaces.
function permits.join_selected(ctx)
    local ids = {}
    for i, transition in ipairs(ctx.selected or {}) do ids[i] = transition.id end
    return table.concat(ids, ' ')
end

-- Tells whether the action needs an approval that the permit does not have.
function permits.needs_approval(ctx, action)
    local permit, rules = ctx.permit, ctx.program.approval
    if not permit or not rules or not is_listed(rules, action) then return false end
    if permit.action ~= action then return true end
    if permit.definition and permit.definition ~= tonumber(ctx.program.version) then return true end
    return permit.transitions ~= nil and permit.transitions ~= permits.join_selected(ctx)
end

return permits
