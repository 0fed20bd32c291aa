-- needs: arguments, delivery, inbox, keys, replies, time_limit
-- sb_deliver: delivers messages of a partition's outbox to instances of another partition (or the same); each is applied
-- once, however often it is delivered.
-- KEYS:    1 root of the partition of the instances
-- ARGV:    1 root of the partition whose outbox they come from · 2 floor: the id of the oldest message that the outbox holds
--          for this partition · 3 now (ms, or '') · 4 ms: for messages older than this, a fault is final ('' = for none) · 5
--          message id (of the stream) · 6 kind (event, start, stop, done, lost, bounce) · 7 instance · 8 body (JSON) · and
--          so on, four for each message, oldest first
-- Returns: {OK, messages in this partition's own outbox, outcome, why, outcome, why, ...}; an outcome is applied, ignored,
--          held, again (delivered before), failed (nothing changed; tell the sender), fault (nothing changed; try again), or
--          waits (behind a fault of the same instance, or the instance is moving) or moved (to the root that `why` names; it
--          takes the message there). A slow call answers for the first ones only · {NOMACHINE} · {BADARG,
--          why}
-- Notifies: <root>:pulse when something moved
-- Cost:    as sb_fire for each message
local KINDS = { event = true, start = true, stop = true, done = true, lost = true, bounce = true }
local FIRST = 5

local function check_arguments(ARGV)
    arguments.need(ARGV[1] and inbox.parse_id(ARGV[2]), 'messages have a source and a floor')
    arguments.need(arguments.read_now(ARGV[4]), 'a time is in ms since the epoch')
    local is_whole = ARGV[FIRST] and (#ARGV - FIRST + 1) % 4 == 0
    arguments.need(is_whole, 'each message has an id, a kind, an instance and a body')
    for i = FIRST, #ARGV, 4 do arguments.need(inbox.parse_id(ARGV[i]), 'a message has an id of the stream') end
end

local function try_message(root, message, now)
    local body = delivery.parse(message.kind, message.body)
    if not body then return 'failed', 'the body is no message' end
    if not KINDS[message.kind] then return 'fault', 'messages of the kind ' .. message.kind .. ' are not known here' end
    return delivery.try_apply(root, message.kind, message.instance, body, now)
end

local function deliver(root, sender, message, now, final_before)
    local before = inbox.find_outcome(sender, message.id)
    if before then return before, before == 'failed' and 'it could not be applied when it came first' or '' end
    local outcome, why = try_message(root, message, now)
    if outcome == 'fault' and (inbox.parse_id(message.id) < final_before or inbox.is_full(sender)) then outcome = 'failed' end
    if outcome == 'moved' or outcome == 'waits' then return outcome, why or '' end
    if outcome ~= 'fault' then inbox.remember(sender, message.id, outcome == 'failed') end
    return outcome, why or ''
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    check_arguments(ARGV)
    local now = arguments.need_now(ARGV[3])
    if redis.call('EXISTS', keys.meta(root)) == 0 then return { replies.NO_MACHINE } end
    local is_over, sender = time_limit.start(), inbox.open(root, ARGV[1], ARGV[2])
    local final_before, stuck, reply = tonumber(ARGV[4] or '') or 0, {}, { replies.OK, 0 }
    for i = FIRST, #ARGV, 4 do
        if i > FIRST and is_over() then break end
        local message = { id = ARGV[i], kind = ARGV[i + 1], instance = ARGV[i + 2], body = ARGV[i + 3] }
        local outcome, why = 'waits', ''
        if not stuck[message.instance] then outcome, why = deliver(root, sender, message, now, final_before) end
        if outcome == 'fault' or outcome == 'waits' then stuck[message.instance] = true end
        reply[#reply + 1], reply[#reply + 2] = outcome, why
    end
    reply[2] = redis.call('XLEN', keys.outbox(root))
    return reply
end
