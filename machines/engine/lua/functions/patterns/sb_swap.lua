-- needs: arguments, replies
-- sb_swap: writes or deletes a string or hash of other programs if it holds what the caller saw; a refusal brings along what
-- is there.
-- KEYS:    1 the key, none of Signalbox's own
-- ARGV:    1 kind seen: none | string | hash | look (of no kind: only says what is there) · 2 kind to be there: the same three ·
--          3 how many words the contents seen have · 4.. those words, then those of the contents to be there (a string is one
--          word, a hash is field and value in turn, none is no word)
-- Returns: {OK} · {CONFLICT, kind, its words...} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(n) fields
local MAX_WORDS, MAX_BYTES = 2000, 1048576
local kinds = { none = true, string = true, hash = true }

local function words_of(key, kind)
    if kind == 'string' then return redis.call('STRLEN', key) <= MAX_BYTES and { redis.call('GET', key) } end
    if kind == 'hash' then return redis.call('HLEN', key) <= MAX_WORDS / 2 and redis.call('HGETALL', key) end
    return {}
end

local function fields(words)
    local found = {}
    for i = 1, #words, 2 do found[words[i]] = words[i + 1] end
    return found
end

local function same(kind, words, others)
    if #words ~= #others then return false end
    if kind ~= 'hash' then return words[1] == others[1] end
    local there = fields(words)
    for i = 1, #others, 2 do
        if there[others[i]] ~= others[i + 1] then return false end
    end
    return true
end

-- Only what differs: the rest, and the key's expiry, stay as they are.
local function write_hash(key, before, after)
    local was, will = fields(before), fields(after)
    for field, value in pairs(will) do
        if was[field] ~= value then redis.call('HSET', key, field, value) end
    end
    for field in pairs(was) do
        if will[field] == nil then redis.call('HDEL', key, field) end
    end
end

local function write(key, kind, before, after)
    if kind == 'none' then
        redis.call('UNLINK', key)
    elseif kind == 'string' then
        redis.call('SET', key, after[1], 'KEEPTTL')
    else
        write_hash(key, before, after)
    end
end

local function fits(kind, words)
    if kind == 'none' then return #words == 0 end
    if kind == 'string' then return #words == 1 end
    return #words > 0 and #words % 2 == 0 and #words <= MAX_WORDS
end

local function split(ARGV, count)
    local seen, wanted, bytes = {}, {}, 0
    for i = 4, #ARGV do
        bytes = bytes + #ARGV[i]
        table.insert(i - 3 <= count and seen or wanted, ARGV[i])
    end
    return seen, wanted, bytes
end

local function misfit(key, seen, wanted)
    if key == '' or string.match(key, '^[%w_.:-]+:{[%a_][%w_.-]*:%d+}:') then
        return 'this key is one of a machine, and only its functions write it'
    end
    if not kinds[seen or ''] or not kinds[wanted or ''] then return 'the kinds are none, string and hash' end
    if seen ~= 'none' and wanted ~= 'none' and seen ~= wanted then return 'a ' .. seen .. ' stays one, or is deleted' end
    return nil
end

return function(KEYS, ARGV)
    local key, seen, wanted = KEYS[1], ARGV[1], ARGV[2]
    local looks = seen == 'look'
    local bad = misfit(key, looks and 'none' or seen, looks and 'none' or wanted)
    local count = arguments.parse_count(ARGV[3], 0, MAX_WORDS)
    if bad or not count then return { replies.BAD_ARGUMENT, bad or 'the contents seen have 0 to ' .. MAX_WORDS .. ' words' } end
    local before, after, bytes = split(ARGV, count)
    if not looks and not (fits(seen, before) and fits(wanted, after) and #before == count) then
        return { replies.BAD_ARGUMENT, 'a string is one word, a hash 1 to ' .. MAX_WORDS / 2 .. ' fields with their values' }
    end
    if bytes > MAX_BYTES then return { replies.BAD_ARGUMENT, 'contents have at most ' .. MAX_BYTES .. ' bytes' } end
    local kind = redis.call('TYPE', key).ok
    if not kinds[kind] then error('the key is a ' .. kind .. ': only a string or a hash can be compared', 0) end
    local there = words_of(key, kind) or error('the key is too large to be compared at each change', 0)
    if looks or kind ~= seen or not same(kind, there, before) then return { replies.CONFLICT, kind, unpack(there) } end
    write(key, wanted, before, after)
    return { replies.OK }
end
