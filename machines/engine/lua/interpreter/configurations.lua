-- Configurations, and the exit and entry sets of SCXML. Pure structure: every result is cached with the program, up to a
-- bound. A state and its descendants have consecutive numbers in document order; `state.last` is the highest.
local configurations = {}

local MAX_REMEMBERED = 4096 -- configurations, and plans, of one program
local SEPARATOR = '\n' -- no name contains a control character

local insert, sort, concat = table.insert, table.sort, table.concat

local function is_higher(a, b) return a > b end

-- Tells whether `index` is a proper descendant of `ancestor`. Number 0 is the machine itself.
local function is_below(program, index, ancestor)
    return ancestor == 0 or index > ancestor and index <= program.states[ancestor].last
end
configurations.is_below = is_below

local function cache(program, kind, key, value)
    local kept = program[kind]
    if kept.count >= MAX_REMEMBERED then
        kept.count, kept.of = 0, {}
    end
    kept.count, kept.of[key] = kept.count + 1, value
    return value
end

-- Makes the configuration of a set of active states; the names of its leaves are its text.
local function make(program, active)
    local all = {}
    for index in pairs(active) do all[#all + 1] = index end
    sort(all)
    local leaves, names = {}, {}
    for _, index in ipairs(all) do
        local state = program.states[index]
        if state.leaf then
            leaves[#leaves + 1], names[#names + 1] = index, state.name
        end
    end
    local text = concat(names, SEPARATOR)
    local known = program.configurations.of[text]
    if known then return known end
    return cache(program, 'configurations', text,
        { text = text, names = names, leaves = leaves, active = active, all = all, plans = {}, chosen = {},
            listening = {} })
end

-- Legal: all children of an active parallel state are active, one child of an active compound one, and none of a leaf.
local function is_legal(program, active)
    for index in pairs(active) do
        local state, count = program.states[index], 0
        for _, child in ipairs(state.children) do
            if active[child] then count = count + 1 end
        end
        local wanted = state.kind == 'parallel' and #state.children or state.kind == 'compound' and 1 or 0
        if count ~= wanted then return false end
    end
    local top = 0
    for _, index in ipairs(program.top) do
        if active[index] then top = top + 1 end
    end
    return top == 1
end

local function parse(program, text)
    local active = {}
    for name in string.gmatch(text, '[^' .. SEPARATOR .. ']+') do
        local index = program.index[name]
        if not index or not program.states[index].leaf then return nil end
        while index ~= 0 do
            active[index] = true
            index = program.states[index].parent
        end
    end
    if not is_legal(program, active) then return nil end
    return make(program, active)
end

-- Parses `_state` of an instance to a configuration; nil when the definition has no such one.
function configurations.parse(program, text)
    local known = program.configurations.of[text]
    if known then return known end
    return parse(program, text)
end

-- Lists for each active leaf the transitions that it and its ancestors have for an event (nil: the eventless ones),
-- innermost first, then in document order. Leaves without transitions are left out.
function configurations.list_candidates(program, config, event)
    local key = event or 1
    local known = config.listening[key]
    if known then return known end
    local lists = {}
    for _, leaf in ipairs(config.leaves) do
        local list, index = {}, leaf
        while index ~= 0 do
            local state = program.states[index]
            for _, transition in ipairs(event and state.listening(event) or state.always) do list[#list + 1] = transition end
            index = state.parent
        end
        if list[1] then lists[#lists + 1] = list end
    end
    if not event or program.known[event] then config.listening[key] = lists end
    return lists
end

-- Plans: one object for one set of transitions, after SCXML's procedures of the same names.
local Plan = {}
Plan.__index = Plan

-- Finds the states that a history state recorded; nil when there are none.
function Plan:find_recorded(state)
    local name = '_h:' .. state.name
    local text = self.recent[name] or self.memory[name]
    if not text then return nil end
    local found = {}
    for leaf in string.gmatch(text, '[^' .. SEPARATOR .. ']+') do
        local index = self.program.index[leaf]
        if not index or not is_below(self.program, index, state.parent) then return nil end
        found[#found + 1] = index
    end
    return found[1] and found
end

function Plan:effective(targets)
    local found = {}
    for _, target in ipairs(targets) do
        local state = self.program.states[target]
        if state.kind == 'history' then
            for _, one in ipairs(self:find_recorded(state) or self:effective(state.default.targets)) do insert(found, one) end
        else
            insert(found, target)
        end
    end
    return found
end

local function contains_all(program, ancestor, targets)
    for _, target in ipairs(targets) do
        if not is_below(program, target, ancestor) then return false end
    end
    return true
end

-- Finds the domain: the state inside which the transition takes place; nil for a transition without target.
function Plan:domain(transition)
    local targets = self:effective(transition.targets)
    if not targets[1] then return nil end
    local source, states = transition.source, self.program.states
    if not transition.reenter then
        local inside = true
        for _, target in ipairs(targets) do
            if target ~= source and not is_below(self.program, target, source) then inside = false end
        end
        if inside then return not states[source].leaf and source or nil end -- a leaf that stays exits and enters nothing
    end
    local ancestor = states[source].parent
    while ancestor ~= 0 do
        if states[ancestor].kind == 'compound' and contains_all(self.program, ancestor, targets) then return ancestor end
        ancestor = states[ancestor].parent
    end
    return 0
end

function Plan:add_ancestors(index, ancestor)
    local states = self.program.states
    local parent = states[index].parent
    while parent ~= ancestor and parent ~= 0 do
        self.entering[parent] = true
        if states[parent].kind == 'parallel' then self:add_regions(parent) end
        parent = states[parent].parent
    end
end

-- Adds the regions of a parallel state in which no state is entered yet.
function Plan:add_regions(parent)
    for _, child in ipairs(self.program.states[parent].children) do
        local entered = self.entering[child]
        for index in pairs(self.entering) do
            if is_below(self.program, index, child) then entered = true end
        end
        if not entered then self:add_descendants(child) end
    end
end

function Plan:add_each(targets, ancestor)
    for _, target in ipairs(targets) do self:add_descendants(target) end
    for _, target in ipairs(targets) do self:add_ancestors(target, ancestor) end
end

function Plan:add_descendants(index)
    local state = self.program.states[index]
    if state.kind == 'history' then
        local recorded = self:find_recorded(state)
        if not recorded then self.after_entry[state.parent] = state.default.actions end
        self:add_each(recorded or state.default.targets, state.parent)
        return
    end
    self.entering[index] = true
    if state.kind == 'compound' then
        self.by_default[index] = true
        self:add_each(state.initial.targets, index)
    elseif state.kind == 'parallel' then
        self:add_regions(index)
    end
end

-- Marks what a transition enters, inside its domain.
function Plan:arrive(transition, domain)
    for _, target in ipairs(transition.targets) do self:add_descendants(target) end
    for _, target in ipairs(self:effective(transition.targets)) do self:add_ancestors(target, domain) end
    if domain > 0 and self.program.states[domain].kind == 'parallel' then self:add_regions(domain) end
end

-- Marks what a transition exits.
function Plan:leave(config, domain)
    for _, index in ipairs(config.all) do
        if is_below(self.program, index, domain) then self.leaving[index] = true end
    end
end

-- Lists what each history state of the exited states records: names of leaves, or of children when it is shallow.
function Plan:records(config)
    local found = {}
    for index in pairs(self.leaving) do
        for _, history in ipairs(self.program.states[index].histories) do
            local state, names = self.program.states[history], {}
            for _, active in ipairs(config.all) do
                local one = self.program.states[active]
                local is_recorded = one.parent == index
                if state.deep then is_recorded = one.leaf and is_below(self.program, active, index) end
                if is_recorded then
                    names[#names + 1] = one.name
                end
            end
            found[#found + 1] = { '_h:' .. state.name, concat(names, SEPARATOR) }
        end
    end
    return found
end

-- A default entry cannot conflict with an explicit target below the same compound state: a legal set of targets never has
-- that, so the entered states are legal together with those that stay.
function Plan:finish(config)
    local leave, enter, active = {}, {}, {}
    for _, index in ipairs(config and config.all or {}) do
        if self.leaving[index] then insert(leave, index) else active[index] = true end
    end
    for index in pairs(self.entering) do
        if not active[index] then
            insert(enter, index)
            active[index] = true
        end
    end
    sort(leave, is_higher)
    sort(enter)
    local entering = {}
    for _, index in ipairs(enter) do entering[index] = true end
    return {
        entering = entering,
        leave = leave,
        enter = enter,
        by_default = self.by_default,
        after_entry = self.after_entry,
        records = config and self:records(config) or {},
        config = make(self.program, active),
    }
end

local function new_plan(program, memory)
    local result = { program = program, memory = memory, entering = {}, leaving = {}, by_default = {}, after_entry = {},
        recent = {} }
    return setmetatable(result, Plan)
end

-- Joins what all history states have recorded to one text.
local function join_history(program, memory)
    local parts = {}
    for i, name in ipairs(program.histories) do parts[i] = memory[name] or '' end
    return concat(parts, '\1')
end

-- Makes the cache key: what the result for these transitions depends on.
local function make_key(program, transitions, memory)
    local key = transitions[1].id
    for i = 2, #transitions do key = key .. ' ' .. transitions[i].id end
    if program.histories[1] then key = key .. '\0' .. join_history(program, memory) end
    return key
end

-- Plans transitions from a configuration: states to exit (inner ones first) and to enter (outer ones first), compound states
-- entered by default, default actions of histories by parent, history records, and the new configuration. `memory` has the
-- earlier records, as `_h:<name>`.
function configurations.plan(program, config, transitions, memory)
    local key = make_key(program, transitions, memory)
    local known = config.plans[key]
    if known then return known end
    local plan, domains = new_plan(program, memory), {}
    for i, transition in ipairs(transitions) do
        domains[i] = plan:domain(transition) or false
        if domains[i] then plan:leave(config, domains[i]) end
    end
    -- Exited states are recorded before anything is entered, because a transition may target their history at once.
    for _, record in ipairs(plan:records(config)) do plan.recent[record[1]] = record[2] end
    for i, transition in ipairs(transitions) do
        if domains[i] then plan:arrive(transition, domains[i]) end
    end
    local result = plan:finish(config)
    program.plans = program.plans + 1
    if program.plans > MAX_REMEMBERED then
        program.plans, program.configurations = 0, { count = 0, of = {} }
    end
    config.plans[key] = result
    return result
end

-- Plans the entry of states from nothing: for a new instance, and for repairs.
function configurations.plan_entry(program, targets, memory)
    local plan = new_plan(program, memory or {})
    plan:add_each(targets, 0)
    return plan:finish(nil)
end

-- Drops targets that have another one among their descendants, which implies them.
function configurations.keep_innermost(program, targets)
    local kept = {}
    for _, target in ipairs(targets) do
        local has_descendant = false
        for _, other in ipairs(targets) do
            has_descendant = has_descendant or other ~= target and is_below(program, other, target)
        end
        if not has_descendant then kept[#kept + 1] = target end
    end
    return kept
end

-- Tells whether the states can be active together.
function configurations.can_be_together(program, targets)
    return is_legal(program, configurations.plan_entry(program, targets).config.active)
end

-- Of conflicting transitions, which exit common states, keeps the inner one, else the first.
local function select_compatible(program, enabled, memory)
    local plan, kept, domains = new_plan(program, memory), {}, {}
    for _, transition in ipairs(enabled) do
        local domain, is_preempted, out = plan:domain(transition), false, {}
        if domain then
            for _, other in ipairs(kept) do
                local rival = domains[other]
                if rival and (rival == domain or is_below(program, rival, domain) or is_below(program, domain, rival)) then
                    if is_below(program, transition.source, other.source) then
                        out[other] = true
                    else
                        is_preempted = true
                        break
                    end
                end
            end
        end
        if not is_preempted then
            local left = {}
            for _, other in ipairs(kept) do
                if not out[other] then left[#left + 1] = other end
            end
            left[#left + 1] = transition
            kept, domains[transition] = left, domain
        end
    end
    return kept
end

function configurations.select_compatible(program, config, enabled, memory)
    local key = make_key(program, enabled, memory)
    local known = config.chosen[key]
    if not known then
        known = select_compatible(program, enabled, memory)
        program.plans = program.plans + 1
        config.chosen[key] = known
    end
    return known
end

return configurations
