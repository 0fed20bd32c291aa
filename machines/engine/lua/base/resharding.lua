-- before each call: refuse_moving
-- Refuses calls while their slot moves key by key between two nodes of a cluster. Meanwhile each node has a part of the
-- slot's keys: a function would meet a partition that looks empty, or fail in the middle of a step.
local resharding = {}

local MOVING = { err = 'TRYAGAIN the slot of this key is being moved to another node; nothing was changed' }
local TAGGED = '^[^{]*{[^}]+}' -- the key names its slot by a tag, so that longer names are of the same slot

local clustered -- whether the server is a node of a cluster; nil until it is known

local function ask_server()
    local info = redis.pcall('INFO', 'cluster')
    return type(info) ~= 'string' or string.find(info, 'cluster_enabled:1', 1, true) ~= nil
end

-- Answers an error that clients repeat the call after, or nil. On the node that gives the slot away, commands on keys that are
-- not there fail; on the one that takes it, commands on several keys that are not there. Both refuse this one, which finds
-- nothing anywhere else. It costs about a microsecond, and nothing on a server that is no node of a cluster.
function resharding.refuse_moving(keys)
    if clustered == false then return nil end
    if clustered == nil then clustered = ask_server() end
    local key = keys[1]
    if not clustered or not key or not string.find(key, TAGGED) then return nil end
    local found = redis.pcall('EXISTS', key .. ':absent:1', key .. ':absent:2')
    if type(found) == 'table' and found.err and string.find(found.err, 'non local key', 1, true) then return MOVING end
    return nil
end

return resharding
