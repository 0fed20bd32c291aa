-- needs: reserved_events, sends, shared_lists, step_source
-- What is known of an instance on one path through a compiled step: its configuration, what was left and entered,
-- which internal events wait. A path forks where a guard decides. It has the fields of the interpreter's context that
-- `chart.finish_region` uses.
local chart_state = {}

local SETS = { 'exited', 'entered', 'fresh', 'records', 'memory', 'edges', 'internal', 'started', 'effects',
    'chosen', 'outcomes' }

local copy = step_source.copy

-- `memory`: `_h:<name>` -> what the history of that name has recorded.
function chart_state.open(program, config, memory)
    return {
        program = program,
        chart = not program.flat,
        origin = config.leaves[1], -- of a flat machine, like `state`, where it ends
        config = config,
        config_before = config,
        memory = copy(memory),
        records = {}, -- those of `memory` that the step writes
        internal = shared_lists.NONE,
        edges = {},
        started = {}, -- jobs of invokes that begin with the step
        effects = {}, -- jobs that actions enqueue
        exited = {},
        entered = {}, -- and not left again
        fresh = {},
        changes = { of = {} },
        microsteps = 0,
        moved = false,
        finished = nil, -- the final state that ends the instance
        timed = false, -- whether the source has the timers
        armed = false, -- whether a timer is certainly left
        chosen = {},
        outcomes = {}, -- transition -> whether its guard holds
    }
end

function chart_state.fork(path)
    local made = copy(path)
    for _, name in ipairs(SETS) do made[name] = copy(path[name]) end
    made.changes = { of = {} }
    for i, change in ipairs(path.changes) do
        local own = copy(change)
        made.changes[i], made.changes.of[own.field.name] = own, own
    end
    return made
end

-- Puts an event without payload behind the internal ones.
function chart_state.raise(writer, path, action)
    local event = action[2]
    if type(event) ~= 'string' or action[3] or reserved_events.is_reserved(event) then step_source.give_up(writer) end
    sends.raise(path, event, {})
end

local enters_history

-- Tells whether entering a state by default may enter a history state.
local function begins_with_history(program, index, seen)
    local state = program.states[index]
    if state.kind == 'compound' then return enters_history(program, state.initial.targets, seen) end
    if state.kind == 'parallel' then return enters_history(program, state.children, seen) end
    return state.kind == 'history'
end

enters_history = function(program, targets, seen)
    for _, target in ipairs(targets) do
        if not seen[target] then
            seen[target] = true
            if begins_with_history(program, target, seen) then return true end
        end
    end
    return false
end

-- Notes whether what a transition leaves and enters depends on what the histories have recorded.
function chart_state.note_memory(writer, transition)
    local program, seen = writer.program, {}
    if not program.histories[1] or writer.uses_memory then return end
    if enters_history(program, transition.targets, seen) then writer.uses_memory = true end
    for _, target in ipairs(transition.targets) do
        local above = program.states[target].parent
        while above and above ~= 0 do
            local state = program.states[above]
            if state.kind == 'parallel' and enters_history(program, state.children, seen) then writer.uses_memory = true end
            above = state.parent
        end
    end
end

return chart_state
