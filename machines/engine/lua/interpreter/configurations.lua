-- Which states are active together, and what a set of transitions makes of them: SCXML's exit and entry sets.
-- Pure structure, so that every answer is remembered with the program, up to a bound. A state and all that is below
-- it have neighbouring numbers, in document order: `state.last` is the highest.
local configurations = {}

local MAX_REMEMBERED = 4096 -- configurations, and plans, of one program
local SEPARATOR = '\n' -- no name holds a control character

local insert, sort, concat = table.insert, table.sort, table.concat

local function descending(a, b) return a > b end

-- Is `index` a proper descendant of `ancestor`? Number 0 is the machine itself.
local function below(program, index, ancestor)
    return ancestor == 0 or index > ancestor and index <= program.states[ancestor].last
end
configurations.below = below

local function remember(program, kind, key, value)
    local kept = program[kind]
    if kept.count >= MAX_REMEMBERED then
        kept.count, kept.of = 0, {}
    end
    kept.count, kept.of[key] = kept.count + 1, value
    return value
end

-- The configuration with these active states (a set); its leaves make its text.
local function of_active(program, active)
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
    return remember(program, 'configurations', text,
        { text = text, names = names, leaves = leaves, active = active, all = all, plans = {}, chosen = {},
            listening = {} })
end

-- Every child of an active parallel state is active, one child of an active compound one, and none of a leaf.
local function legal(program, active)
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
    if not legal(program, active) then return nil end
    return of_active(program, active)
end

-- The configuration an instance's `_state` names; nil where the definition has no such one.
function configurations.named(program, text)
    local known = program.configurations.of[text]
    if known then return known end
    return parse(program, text)
end

-- For each active leaf, the transitions it and its ancestors have for an event (nil: the eventless ones), innermost
-- first and then in document order. Leaves without any are left out.
function configurations.candidates(program, config, event)
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

-- Planning: one object for one set of transitions, after SCXML's procedures of the same names.
local Plan = {}
Plan.__index = Plan

-- What a history state stands for now: the states it recorded, or nothing.
function Plan:recorded(state)
    local name = '_h:' .. state.name
    local text = self.recent[name] or self.memory[name]
    if not text then return nil end
    local found = {}
    for leaf in string.gmatch(text, '[^' .. SEPARATOR .. ']+') do
        local index = self.program.index[leaf]
        if not index or not below(self.program, index, state.parent) then return nil end
        found[#found + 1] = index
    end
    return found[1] and found
end

function Plan:effective(targets)
    local found = {}
    for _, target in ipairs(targets) do
        local state = self.program.states[target]
        if state.kind == 'history' then
            for _, one in ipairs(self:recorded(state) or self:effective(state.default.targets)) do insert(found, one) end
        else
            insert(found, target)
        end
    end
    return found
end

local function contains_all(program, ancestor, targets)
    for _, target in ipairs(targets) do
        if not below(program, target, ancestor) then return false end
    end
    return true
end

-- The state inside which the transition takes place; nil when it has no target.
function Plan:domain(transition)
    local targets = self:effective(transition.targets)
    if not targets[1] then return nil end
    local source, states = transition.source, self.program.states
    if not transition.reenter then
        local inside = true
        for _, target in ipairs(targets) do
            if target ~= source and not below(self.program, target, source) then inside = false end
        end
        if inside then return not states[source].leaf and source or nil end -- a leaf that stays leaves and enters nothing
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

-- The regions of a parallel state in which nothing is entered yet.
function Plan:add_regions(parent)
    for _, child in ipairs(self.program.states[parent].children) do
        local entered = self.entering[child]
        for index in pairs(self.entering) do
            if below(self.program, index, child) then entered = true end
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
        local recorded = self:recorded(state)
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

-- Marks what a transition leaves.
function Plan:leave(config, domain)
    for _, index in ipairs(config.all) do
        if below(self.program, index, domain) then self.leaving[index] = true end
    end
end

-- What each history state of the states left has to remember: names of leaves, or of children when shallow.
function Plan:records(config)
    local found = {}
    for index in pairs(self.leaving) do
        for _, history in ipairs(self.program.states[index].histories) do
            local state, names = self.program.states[history], {}
            for _, active in ipairs(config.all) do
                local one = self.program.states[active]
                if state.deep and one.leaf and below(self.program, active, index) or not state.deep and one.parent == index then
                    names[#names + 1] = one.name
                end
            end
            found[#found + 1] = { '_h:' .. state.name, concat(names, SEPARATOR) }
        end
    end
    return found
end

-- Defaults that were overtaken: an explicit target below a compound state, met after its initial one was added,
-- never happens in a legal set of targets, so that what is entered is legal together with what stays.
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
    sort(leave, descending)
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
        config = of_active(self.program, active),
    }
end

local function planner(program, memory)
    local made = { program = program, memory = memory, entering = {}, leaving = {}, by_default = {}, after_entry = {},
        recent = {} }
    return setmetatable(made, Plan)
end

-- Everything that history states remember now, as one text.
local function remembered(program, memory)
    local parts = {}
    for i, name in ipairs(program.histories) do parts[i] = memory[name] or '' end
    return concat(parts, '\1')
end

-- What an answer about these transitions depends on.
local function key_of(program, transitions, memory)
    local key = transitions[1].id
    for i = 2, #transitions do key = key .. ' ' .. transitions[i].id end
    if program.histories[1] then key = key .. '\0' .. remembered(program, memory) end
    return key
end

-- What these transitions do to a configuration: states to leave (inner ones first) and to enter (outer ones first), the
-- compound ones entered by default, default actions of histories by parent, what histories record, and what comes out.
-- `memory` holds what they recorded before, as `_h:<name>`.
function configurations.plan(program, config, transitions, memory)
    local key = key_of(program, transitions, memory)
    local known = config.plans[key]
    if known then return known end
    local plan, domains = planner(program, memory), {}
    for i, transition in ipairs(transitions) do
        domains[i] = plan:domain(transition) or false
        if domains[i] then plan:leave(config, domains[i]) end
    end
    -- What is left is remembered before anything is entered, so that a history may lead straight back.
    for _, record in ipairs(plan:records(config)) do plan.recent[record[1]] = record[2] end
    for i, transition in ipairs(transitions) do
        if domains[i] then plan:arrive(transition, domains[i]) end
    end
    local made = plan:finish(config)
    program.plans = program.plans + 1
    if program.plans > MAX_REMEMBERED then
        program.plans, program.configurations = 0, { count = 0, of = {} }
    end
    config.plans[key] = made
    return made
end

-- What entering these states makes of nothing: for a new instance, and for repairs.
function configurations.entered(program, targets, memory)
    local plan = planner(program, memory or {})
    plan:add_each(targets, 0)
    return plan:finish(nil)
end

-- Without those that another one lies below: naming it says the same and more.
function configurations.innermost(program, targets)
    local kept = {}
    for _, target in ipairs(targets) do
        local around = false
        for _, other in ipairs(targets) do around = around or other ~= target and below(program, other, target) end
        if not around then kept[#kept + 1] = target end
    end
    return kept
end

-- Can these states be active together?
function configurations.together(program, targets)
    return legal(program, configurations.entered(program, targets).config.active)
end

-- Of transitions that leave states in common, the one further inside wins, else the one that came first.
local function compatible(program, enabled, memory)
    local plan, kept, domains = planner(program, memory), {}, {}
    for _, transition in ipairs(enabled) do
        local domain, beaten, out = plan:domain(transition), false, {}
        if domain then
            for _, other in ipairs(kept) do
                local rival = domains[other]
                if rival and (rival == domain or below(program, rival, domain) or below(program, domain, rival)) then
                    if below(program, transition.source, other.source) then
                        out[other] = true
                    else
                        beaten = true
                        break
                    end
                end
            end
        end
        if not beaten then
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

function configurations.compatible(program, config, enabled, memory)
    local key = key_of(program, enabled, memory)
    local known = config.chosen[key]
    if not known then
        known = compatible(program, enabled, memory)
        program.plans = program.plans + 1
        config.chosen[key] = known
    end
    return known
end

return configurations
