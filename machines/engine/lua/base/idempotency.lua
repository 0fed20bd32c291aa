-- needs: json, keys, replies
-- What a call with an idempotency key answered the first time, kept for a day under a key of its own.
local idempotency = {}

local KEEP_MS = 86400000

-- The first answer, marked as given again; nil where there is none. Whether what was asked for happened nobody can tell
-- where somebody else wrote into its place.
function idempotency.recall(key)
    local stored = redis.call('GET', key)
    if not stored then return nil end
    local ok, reply = pcall(cmsgpack.unpack, stored)
    if not ok or type(reply) ~= 'table' or type(reply[4]) ~= 'string' then
        return { replies.FAULT, 'what is kept under ' .. key .. ' was not written by the engine' }
    end
    reply[3] = '1'
    return reply
end

-- The first answer to a call on this instance; nil where there is none, or where the instance was made again since under
-- the same id: that outcome was another instance's.
function idempotency.replayed(root, id, key)
    local reply = idempotency.recall(keys.outcome(root, id, key))
    if not reply or reply[1] ~= replies.OK then return reply end
    local created = redis.call('HGET', keys.instance(root, id), '_created')
    if created and created ~= json.number(tonumber(cjson.decode(reply[4])._created)) then return nil end
    return reply
end

function idempotency.keep(key, reply)
    redis.call('SET', key, cmsgpack.pack(reply), 'PX', KEEP_MS)
end

return idempotency
