-- needs: keys, programs, sends
-- Decides who may send to a machine: the senders that its current version names under `accepts`, for instances of all
-- versions. The machine itself always may, and so may the parent and the children of an instance.
local accepted_senders = {}

local function accepts(compiled, sender)
    local declared = compiled.accepts or {}
    return compiled.machine == sender or declared['*'] or declared[sender]
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
    local current = redis.call('HGET', keys.meta(root), 'current')
    local compiled = current and programs.load(root, current)
    if not compiled or accepts(compiled, from.machine) then return nil end
    return describe_refusal(compiled.machine, from.machine)
end

-- Answers why a new instance is refused, or nil. Publishing a machine that names the machines it invokes needs a right on
-- these; no such check saw a computed name.
function accepted_senders.check_start(compiled, body)
    local sender = body.from.machine
    if not compiled.accepts and not body.computed or accepts(compiled, sender) then return nil end
    return describe_refusal(compiled.machine, sender)
end

return accepted_senders
