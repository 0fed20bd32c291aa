-- needs: arguments, delivering, keys, replies, values
-- sb_deliver: hands one message of another partition's outbox to the instance it is for, once however often it comes.
-- KEYS:    1 root of the partition the instance lives in
-- ARGV:    1 root of the partition whose outbox it comes from · 2 message id (of the stream) · 3 floor: the id of that
--          outbox's oldest message · 4 kind (event, start, stop, done, lost) · 5 instance · 6 body (JSON) · 7 now (ms, or '')
-- Returns: {OK, 'applied' | 'ignored' | 'held' | 'again'} · {FAILED, why} nothing changed, tell the sender
--          · {FAULT, why} nothing changed, try again · {BADARG, why}
-- Notifies: <root>:pulse when something moved
-- Cost:    as sb_fire
local KINDS = { event = true, start = true, stop = true, done = true, lost = true }

local function parts(id)
    local ms, number = string.match(id or '', '^(%d+)-(%d+)$')
    return tonumber(ms), tonumber(number)
end

-- Everything below a source's floor is settled; of the rest, the ids that came are remembered.
local function came_before(root, source, id)
    local ms, number = parts(id)
    local floor_ms, floor_number = parts(redis.call('HGET', keys.floors(root), source) or '0-0')
    if ms < floor_ms or ms == floor_ms and number < floor_number then return true end
    return redis.call('ZSCORE', keys.seen(root, source), id) and true or false
end

local function remember(root, source, id, floor)
    local ms = parts(id)
    redis.call('ZADD', keys.seen(root, source), ms, id)
    local floor_ms, floor_number = parts(floor)
    local known_ms, known_number = parts(redis.call('HGET', keys.floors(root), source) or '0-0')
    if floor_ms > known_ms or floor_ms == known_ms and floor_number > known_number then
        redis.call('HSET', keys.floors(root), source, floor)
        redis.call('ZREMRANGEBYSCORE', keys.seen(root, source), '-inf', '(' .. floor_ms)
    end
end

return function(KEYS, ARGV)
    local root, source, id, floor, kind = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
    local bad = arguments.misfit('', '', '', '', ARGV[7] or '')
    if not source or not parts(id) or not parts(floor) then bad = 'a message has a source, an id and a floor' end
    if not KINDS[kind] or not ARGV[5] then bad = bad or 'a message has a kind and an instance' end
    local ok, body = pcall(cjson.decode, ARGV[6] or '')
    if not ok or type(body) ~= 'table' or type(body.from) ~= 'table' then bad = bad or 'the body is no message' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    if came_before(root, source, id) then return { replies.OK, 'again' } end
    -- Asked before anything is written: what is remembered of the message stands and falls with its effect.
    redis.call('ZCARD', keys.seen(root, source))
    local fine, verdict, why = pcall(delivering.apply, root, kind, ARGV[5], body, arguments.now(ARGV[7]))
    if not fine then return { replies.FAULT, values.message(verdict) } end
    if verdict == 'failed' then return { replies.FAILED, why or '' } end
    if verdict == 'fault' then return { replies.FAULT, why or '' } end
    remember(root, source, id, floor)
    return { replies.OK, verdict }
end
