-- needs: keys, programs, sends
-- Decides who may send to a machine: the senders that its current version names under `accepts`, for instances of all
-- versions. The machine itself always may, and so may the parent and the children of an instance.
local accepted_senders = {}

local find = string.find

-- Tells whether a machine accepts a sender. `granted`: the names that an upgrade found in use, for a machine that declares
-- none; nil when no upgrade has looked yet, and all senders are accepted as before.
local function accepts(compiled, granted, sender)
    if compiled.machine == sender then return true end
    local declared = compiled.accepts
    if declared then return (declared['*'] or declared[sender]) == true end
    return not granted or find(' ' .. granted .. ' ', ' ' .. sender .. ' ', 1, true) ~= nil
end

-- Reads the current program and the granted names; nil when no program is published.
local function read_policy(root)
    local row = redis.call('HMGET', keys.meta(root), 'current', 'granted')
    return row[1] and programs.load(root, row[1]) or nil, row[2] or nil
end

local function describe_refusal(machine, sender)
    return "the machine '" .. machine .. "' accepts nothing from '" .. sender .. "': its definition names under "
        .. '"accepts" who may send to it'
end

local function is_same(other, from)
    return other ~= nil and other.machine == from.machine and other.id == from.id
end

local function is_related(ctx, from)
    if is_same(sends.read_parent(ctx), from) then return true end
    for _, child in pairs(ctx.raw._children and sends.read_children(ctx) or {}) do
        if is_same(child, from) then return true end
    end
    return false
end

-- Answers why an event is refused, or nil. `ctx` is nil when the instance does not exist: strangers get the same answer
-- then. An event with an invoke was sent to `#_parent`; `delivery` checks whether that invocation still counts.
function accepted_senders.check_event(root, ctx, body)
    local from = body.from
    if ctx and (body.invoke or from.machine == ctx.program.machine or is_related(ctx, from)) then return nil end
    local compiled, granted = read_policy(root)
    if not compiled or accepts(compiled, granted, from.machine) then return nil end
    return describe_refusal(compiled.machine, from.machine)
end

-- Answers why a new instance is refused, or nil. Publishing a machine that names the machines it invokes needs a right on
-- these; no such check saw a computed name.
function accepted_senders.check_start(compiled, body)
    local sender = body.from.machine
    if not compiled.accepts and not body.computed then return nil end
    local granted = not compiled.accepts and redis.call('HGET', keys.meta(compiled.root), 'granted') or nil
    if accepts(compiled, granted, sender) then return nil end
    return describe_refusal(compiled.machine, sender)
end

return accepted_senders
