-- needs: json, keys
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

-- The first answer to a call on this instance; nil where there is none, or where the instance was made again since under
-- the same id: that outcome was another instance's.
function outcomes.replayed(root, id, key)
    local reply = outcomes.recall(keys.outcome(root, id, key))
    if not reply then return nil end
    local created = redis.call('HGET', keys.instance(root, id), '_created')
    if created and created ~= json.number(tonumber(cjson.decode(reply[4])._created)) then return nil end
    return reply
end

function outcomes.keep(key, reply)
    redis.call('SET', key, cmsgpack.pack(reply), 'PX', KEEP_MS)
end

return outcomes
