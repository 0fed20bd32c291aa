-- needs: arguments, pattern_keys, replies, strings
-- sb_buffer_claim: leases a batch to a flusher: one whose lease has expired, else the entries that have waited longest.
-- KEYS:    1 root of one part of a write buffer
-- ARGV:    1 now (ms, or '') · 2 most entries (1 to 1000) · 3 lease in ms (1 to a day) · 4 ms that an entry gathers writes
--          first (0 to a day) · 5 nonce, mixed into the token
-- Returns: {OK} without a batch, or {OK, batch, token, how often it was claimed, ms the lease ends, entry, ...}, each entry
--          the JSON of [id, entity, ms of its first write, "c:<counter>" or "f:<field>", value, ...]; a field's value is
--          "<ms of its write> <JSON>" · {FAULT, why} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(W + N * log(M)) for W values of N entries, and M that wait
local MAX_COUNT, MAX_BYTES = 1000, 4194304 -- bytes of a batch at most, beyond the first entry
local FREE_CLAIMS = 5 -- claims without a pause beside the lease; further claims are delayed more and more
local MAX_PAUSE_MS = 600000 -- the longest such pause
local FOREIGN_PAUSE_MS = 60000 -- pause before a key that another program wrote is read again
local ENTRY_FIELD = '_' -- as sb_buffer_add writes it

local function parse(ARGV)
    local count, nonce = arguments.need_count('how many entries', ARGV[2], 1, MAX_COUNT), ARGV[5] or ''
    local lease = arguments.need_count('lease, in ms,', ARGV[3], 1, arguments.MAX_MS)
    local gather = arguments.need_count('how long an entry gathers writes, in ms,', ARGV[4], 0, arguments.MAX_MS)
    arguments.need(string.match(nonce, '^%w+$') and #nonce <= 64, 'a nonce has 1 to 64 letters and digits')
    return { now = (arguments.need_now(ARGV[1])), count = count, lease = lease, gather = gather, nonce = nonce }
end

local function format_number(number)
    return string.format('%d', number)
end

-- Leases the batch; it may be claimed again at the end of the lease, or after a pause.
local function lease_batch(root, batch, takes, call)
    local ends = call.now + call.lease
    local claimable = ends
    if takes > FREE_CLAIMS then claimable = ends + math.min(MAX_PAUSE_MS, 1000 * 2 ^ math.min(takes - FREE_CLAIMS, 20)) end
    redis.call('ZADD', pattern_keys.buffer_claims(root), format_number(claimable), batch)
    return ends
end

local function read_entries(key, count)
    local found = {}
    for first = 1, count, 500 do
        local names = {}
        for i = first, math.min(count, first + 499) do names[#names + 1] = format_number(i) end
        for _, text in ipairs(redis.call('HMGET', key, unpack(names))) do
            if text then found[#found + 1] = text end
        end
    end
    return found
end

-- Claims a batch whose lease has expired, with all its entries.
local function claim_expired(root, call)
    local claims = pattern_keys.buffer_claims(root)
    for _, batch in ipairs(redis.call('ZRANGEBYSCORE', claims, '-inf', format_number(call.now), 'LIMIT', 0, 10)) do
        local key = pattern_keys.buffer_batch(root, batch)
        local facts = redis.pcall('HMGET', key, 'takes', 'count')
        local takes, count = tonumber(facts[1] or ''), tonumber(facts[2] or '')
        if facts.err or takes and not count then
            redis.call('ZADD', claims, format_number(call.now + FOREIGN_PAUSE_MS), batch)
        elseif not takes then
            redis.call('ZREM', claims, batch)
        else
            local token = format_number(takes + 1) .. '-' .. call.nonce
            redis.call('HSET', key, 'takes', format_number(takes + 1), 'token', token)
            local ends = lease_batch(root, batch, takes + 1, call)
            return { replies.OK, batch, token, takes + 1, ends, unpack(read_entries(key, math.min(count, MAX_COUNT))) }
        end
    end
end

-- Encodes the valid parts of an open entry; nil for anything else.
local function encode_entry(entity, flat)
    local words, id, since = { '', entity, '' }, nil, nil
    for i = 1, #flat, 2 do
        local name, value = flat[i], flat[i + 1]
        local kind = string.sub(name, 1, 2)
        if name == ENTRY_FIELD then
            id, since = string.match(value, '^(%S+) (%d+) %d+ %d+$')
        elseif kind == 'c:' and string.match(value, '^-?%d+$') or kind == 'f:' and string.match(value, '^%d+ ') then
            if strings.is_valid(name) and strings.is_valid(value) then words[#words + 1], words[#words + 2] = name, value end
        end
    end
    words[1], words[3] = id, since
    return id and cjson.encode(words), since
end

-- Picks the entries that have waited longest, as JSON; keys of another program are skipped and read later.
local function pick_oldest(root, call)
    local pending, picked, size = pattern_keys.buffer_pending(root), { foreign = {} }, 0
    local last = call.gather > 0 and format_number(call.now - call.gather) or '+inf'
    for _, entity in ipairs(redis.call('ZRANGEBYSCORE', pending, '-inf', last, 'LIMIT', 0, call.count)) do
        local flat = redis.pcall('HGETALL', pattern_keys.buffer_open(root, entity))
        local text, since = nil, nil
        if not flat.err then text, since = encode_entry(entity, flat) end
        if not text then
            picked.foreign[#picked.foreign + 1] = entity
        else
            size = size + #text
            if size > MAX_BYTES and picked[1] then break end
            picked[#picked + 1] = { entity = entity, text = text, since = since }
        end
    end
    return picked
end

local function make_batch(root, picked, call)
    local batch = format_number(call.now) .. '-' .. format_number(redis.call('INCR', pattern_keys.buffer_seq(root)))
    local key, token = pattern_keys.buffer_batch(root, batch), '1-' .. call.nonce
    local reply, gone, keys = { replies.OK, batch, token, 1, 0 }, {}, {}
    local words = { 'token', token, 'takes', '1', 'count', format_number(#picked), 'since', picked[1].since }
    for i, each in ipairs(picked) do
        words[#words + 1], words[#words + 2] = format_number(i), each.text
        gone[i], keys[i], reply[i + 5] = each.entity, pattern_keys.buffer_open(root, each.entity), each.text
    end
    redis.call('HSET', key, unpack(words))
    redis.call('UNLINK', unpack(keys))
    redis.call('ZREM', pattern_keys.buffer_pending(root), unpack(gone))
    redis.call('INCRBY', pattern_keys.buffer_held(root), #picked)
    reply[5] = lease_batch(root, batch, 1, call)
    return reply
end

return function(KEYS, ARGV)
    local root, call = KEYS[1], parse(ARGV)
    local held = redis.call('GET', pattern_keys.buffer_held(root)) or '0'
    local number = tonumber(held)
    if not number or format_number(number) ~= held or math.abs(number) > 2 ^ 53 then -- INCRBY would fail halfway
        return { replies.FAULT, 'no whole number is in ' .. pattern_keys.buffer_held(root) }
    end
    local claimable = claim_expired(root, call)
    if claimable then return claimable end
    local picked = pick_oldest(root, call)
    for _, entity in ipairs(picked.foreign) do
        redis.call('ZADD', pattern_keys.buffer_pending(root), format_number(call.now + FOREIGN_PAUSE_MS), entity)
    end
    return picked[1] and make_batch(root, picked, call) or { replies.OK }
end
