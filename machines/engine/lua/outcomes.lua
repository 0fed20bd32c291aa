-- What a call with an idempotency key answered the first time, kept for a day under a key of its own.
local outcomes = {}

local KEEP_MS = 86400000

-- The first answer, marked as given again; nil where there is none.
function outcomes.recall(key)
    local stored = redis.call('GET', key)
    if not stored then return nil end
    local reply = cmsgpack.unpack(stored)
    reply[3] = '1'
    return reply
end

function outcomes.keep(key, reply)
    redis.call('SET', key, cmsgpack.pack(reply), 'PX', KEEP_MS)
end

return outcomes
