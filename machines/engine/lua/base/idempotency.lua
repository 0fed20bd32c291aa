-- needs: json, keys, replies
-- Stores the reply to a call with an idempotency key for a day, so that a repeated call gets the same reply.
local idempotency = {}

local KEEP_MS = 86400000

-- Answers the stored reply, marked as replayed; nil when there is none, FAULT when another program wrote the key: the engine
-- cannot tell then whether the call happened.
function idempotency.read(key)
    local stored = redis.call('GET', key)
    if not stored then return nil end
    local ok, reply = pcall(cmsgpack.unpack, stored)
    if not ok or type(reply) ~= 'table' or type(reply[4]) ~= 'string' then
        return { replies.FAULT, 'the reply stored under ' .. key .. ' was not written by the engine' }
    end
    reply[3] = '1'
    return reply
end

-- Answers the stored reply to a call on this instance. nil when there is none, or when the instance was created anew under
-- the same id: that reply belongs to another instance.
function idempotency.find(root, id, key)
    local reply = idempotency.read(keys.outcome(root, id, key))
    if not reply or reply[1] ~= replies.OK then return reply end
    local created = redis.call('HGET', keys.instance(root, id), '_created')
    if created and created ~= json.number(tonumber(cjson.decode(reply[4])._created)) then return nil end
    return reply
end

function idempotency.store(key, reply)
    redis.call('SET', key, cmsgpack.pack(reply), 'PX', KEEP_MS)
end

return idempotency
