-- needs: keys, programs, sends
-- Who may send to a machine: the senders its current version names under `accepts`, for instances of all versions; besides
-- these always the machine itself, and of each instance its parent and its children.
local accepted_senders = {}

local find = string.find

-- Is a sender among those a machine accepts? `granted`: the names that an upgrade found in use, for a machine that declares
-- none itself; nil where nobody has looked yet, and everyone goes on as before.
local function names(compiled, granted, sender)
    if compiled.machine == sender then return true end
    local declared = compiled.accepts
    if declared then return (declared['*'] or declared[sender]) == true end
    return not granted or find(' ' .. granted .. ' ', ' ' .. sender .. ' ', 1, true) ~= nil
end

-- The current program and what was granted; nil where there is none to run.
local function policy(root)
    local row = redis.call('HMGET', keys.meta(root), 'current', 'granted')
    return row[1] and programs.load(root, row[1]) or nil, row[2] or nil
end

local function refusal(machine, sender)
    return "the machine '" .. machine .. "' accepts nothing from '" .. sender .. "': its definition names under "
        .. '"accepts" who may send to it'
end

local function is(other, from)
    return other ~= nil and other.machine == from.machine and other.id == from.id
end

local function related(ctx, from)
    if is(sends.parent(ctx), from) then return true end
    for _, child in pairs(ctx.raw._children and sends.children(ctx) or {}) do
        if is(child, from) then return true end
    end
    return false
end

-- Why an event is refused, or nil. `ctx` is nil where there is no such instance: strangers are told the same then. What
-- names an invocation was sent to `#_parent`: whether it still counts is asked elsewhere.
function accepted_senders.of_event(root, ctx, body)
    local from = body.from
    if ctx and (body.invoke or from.machine == ctx.program.machine or related(ctx, from)) then return nil end
    local compiled, granted = policy(root)
    if not compiled or names(compiled, granted, from.machine) then return nil end
    return refusal(compiled.machine, from.machine)
end

-- Why a new instance is refused, or nil. Whoever published a machine that others invoke by name was asked for a right on
-- these; a name that is computed was seen by nobody.
function accepted_senders.of_start(compiled, body)
    local sender = body.from.machine
    if not compiled.accepts and not body.computed then return nil end
    local granted = not compiled.accepts and redis.call('HGET', keys.meta(compiled.root), 'granted') or nil
    if names(compiled, granted, sender) then return nil end
    return refusal(compiled.machine, sender)
end

return accepted_senders
