-- needs: arguments, pattern_keys, replies, strings
-- sb_buffer_claim: gives a flusher a batch for a time: one whose time ran out, else the entries that have waited longest.
-- KEYS:    1 root of one part of a write buffer
-- ARGV:    1 now (ms, or '') · 2 entries at most (1 to 1000) · 3 lease in ms (1 to a day) · 4 ms that an entry gathers writes for
--          before it is given out (0 to a day) · 5 nonce, mixed into the token
-- Returns: {OK} where there is none, or {OK, batch, token, how often it was taken, ms the lease ends, entry, ...}, each entry the
--          JSON of [id, entity, ms of its first write, "c:<counter>" or "f:<field>", value, ...]; a field's value is
--          "<ms of its write> <JSON>" · {FAULT, why} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(W + N * log(M)) for W words of N entries, and M that wait
local MAX_COUNT, MAX_BYTES = 1000, 4194304 -- a batch holds this much at most, and one entry at least
local PATIENT = 5 -- times it is taken with nothing but its lease between; then it comes less and less often
local LONGEST = 600000 -- ms that it is left alone at most, beside its lease
local LATER = 60000 -- ms until something foreign is looked at again
local OWN = '_' -- as sb_buffer_add writes it

local function read(ARGV)
    local bad = arguments.check('', '', '', '', ARGV[1] or '')
    if bad then return nil, bad end
    local count, lease = arguments.parse_count(ARGV[2], 1, MAX_COUNT), arguments.parse_count(ARGV[3], 1, arguments.MAX_MS)
    local gather, nonce = arguments.parse_count(ARGV[4], 0, arguments.MAX_MS), ARGV[5] or ''
    if not count then return nil, 'a batch has 1 to ' .. MAX_COUNT .. ' entries' end
    if not lease then return nil, 'a lease has 1 to ' .. arguments.MAX_MS .. ' ms' end
    if not gather then return nil, 'an entry gathers writes for 0 to ' .. arguments.MAX_MS .. ' ms' end
    if not string.match(nonce, '^%w+$') or #nonce > 64 then return nil, 'a nonce has 1 to 64 letters and digits' end
    return { now = arguments.read_now(ARGV[1]), count = count, lease = lease, gather = gather, nonce = nonce }
end

local function digits(number)
    return string.format('%d', number)
end

-- Until when the batch is nobody else's, and from when it may be claimed again.
local function lend(root, batch, takes, call)
    local ends = call.now + call.lease
    local again = ends
    if takes > PATIENT then again = ends + math.min(LONGEST, 1000 * 2 ^ math.min(takes - PATIENT, 20)) end
    redis.call('ZADD', pattern_keys.buffer_claims(root), digits(again), batch)
    return ends
end

local function entries(key, count)
    local found = {}
    for first = 1, count, 500 do
        local names = {}
        for i = first, math.min(count, first + 499) do names[#names + 1] = digits(i) end
        for _, text in ipairs(redis.call('HMGET', key, unpack(names))) do
            if text then found[#found + 1] = text end
        end
    end
    return found
end

-- A batch that nobody holds any more, with all that was in it.
local function claim_again(root, call)
    local claims = pattern_keys.buffer_claims(root)
    for _, batch in ipairs(redis.call('ZRANGEBYSCORE', claims, '-inf', digits(call.now), 'LIMIT', 0, 10)) do
        local key = pattern_keys.buffer_batch(root, batch)
        local own = redis.pcall('HMGET', key, 'takes', 'count')
        local takes, count = tonumber(own[1] or ''), tonumber(own[2] or '')
        if own.err or takes and not count then
            redis.call('ZADD', claims, digits(call.now + LATER), batch)
        elseif not takes then
            redis.call('ZREM', claims, batch)
        else
            local token = digits(takes + 1) .. '-' .. call.nonce
            redis.call('HSET', key, 'takes', digits(takes + 1), 'token', token)
            local ends = lend(root, batch, takes + 1, call)
            return { replies.OK, batch, token, takes + 1, ends, unpack(entries(key, math.min(count, MAX_COUNT))) }
        end
    end
end

-- Of what is there only that which an entry is made of; nil where it is none.
local function entry_text(entity, flat)
    local words, id, since = { '', entity, '' }, nil, nil
    for i = 1, #flat, 2 do
        local name, value = flat[i], flat[i + 1]
        local kind = string.sub(name, 1, 2)
        if name == OWN then
            id, since = string.match(value, '^(%S+) (%d+) %d+ %d+$')
        elseif kind == 'c:' and string.match(value, '^-?%d+$') or kind == 'f:' and string.match(value, '^%d+ ') then
            if strings.is_valid(name) and strings.is_valid(value) then words[#words + 1], words[#words + 2] = name, value end
        end
    end
    words[1], words[3] = id, since
    return id and cjson.encode(words), since
end

-- The entries that have waited longest, as JSON; what is foreign among them stays, and is looked at later.
local function oldest(root, call)
    local pending, picked, size = pattern_keys.buffer_pending(root), { foreign = {} }, 0
    local last = call.gather > 0 and digits(call.now - call.gather) or '+inf'
    for _, entity in ipairs(redis.call('ZRANGEBYSCORE', pending, '-inf', last, 'LIMIT', 0, call.count)) do
        local flat = redis.pcall('HGETALL', pattern_keys.buffer_open(root, entity))
        local text, since = nil, nil
        if not flat.err then text, since = entry_text(entity, flat) end
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
    local batch = digits(call.now) .. '-' .. digits(redis.call('INCR', pattern_keys.buffer_seq(root)))
    local key, token = pattern_keys.buffer_batch(root, batch), '1-' .. call.nonce
    local reply, gone, keys = { replies.OK, batch, token, 1, 0 }, {}, {}
    local words = { 'token', token, 'takes', '1', 'count', digits(#picked), 'since', picked[1].since }
    for i, each in ipairs(picked) do
        words[#words + 1], words[#words + 2] = digits(i), each.text
        gone[i], keys[i], reply[i + 5] = each.entity, pattern_keys.buffer_open(root, each.entity), each.text
    end
    redis.call('HSET', key, unpack(words))
    redis.call('UNLINK', unpack(keys))
    redis.call('ZREM', pattern_keys.buffer_pending(root), unpack(gone))
    redis.call('INCRBY', pattern_keys.buffer_held(root), #picked)
    reply[5] = lend(root, batch, 1, call)
    return reply
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    local call, bad = read(ARGV)
    if not call then return { replies.BAD_ARGUMENT, bad } end
    local held = redis.call('GET', pattern_keys.buffer_held(root)) or '0'
    local number = tonumber(held)
    if not number or digits(number) ~= held or math.abs(number) > 2 ^ 53 then -- INCRBY would stop halfway
        return { replies.FAULT, 'no whole number is in ' .. pattern_keys.buffer_held(root) }
    end
    local again = claim_again(root, call)
    if again then return again end
    local picked = oldest(root, call)
    for _, entity in ipairs(picked.foreign) do
        redis.call('ZADD', pattern_keys.buffer_pending(root), digits(call.now + LATER), entity)
    end
    return picked[1] and make_batch(root, picked, call) or { replies.OK }
end
