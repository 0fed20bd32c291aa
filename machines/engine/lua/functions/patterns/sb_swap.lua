-- needs: arguments, replies
-- sb_swap: writes or deletes a string or hash of another program if it holds what the caller saw; a refusal has the actual
-- contents.
-- KEYS:    1 a key that does not belong to Signalbox
-- ARGV:    1 kind seen: none | string | hash | look (only reads the contents) · 2 kind to write: none | string | hash · 3
--          number of values of the contents seen · 4.. these values, then those to write (a string is one value, a hash is
--          field and value in turn, none has no values)
-- Returns: {OK} · {CONFLICT, kind, its values...} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(n) fields
local MAX_WORDS, MAX_BYTES = 2000, 1048576
local kinds = { none = true, string = true, hash = true }

local function read_contents(key, kind)
    if kind == 'string' then return redis.call('STRLEN', key) <= MAX_BYTES and { redis.call('GET', key) } end
    if kind == 'hash' then return redis.call('HLEN', key) <= MAX_WORDS / 2 and redis.call('HGETALL', key) end
    return {}
end

local function to_table(contents)
    local found = {}
    for i = 1, #contents, 2 do found[contents[i]] = contents[i + 1] end
    return found
end

local function is_same(kind, contents, others)
    if #contents ~= #others then return false end
    if kind ~= 'hash' then return contents[1] == others[1] end
    local there = to_table(contents)
    for i = 1, #others, 2 do
        if there[others[i]] ~= others[i + 1] then return false end
    end
    return true
end

-- Writes only what differs: other fields, and the key's expiry, stay as they are.
local function write_hash(key, before, after)
    local was, will = to_table(before), to_table(after)
    for field, value in pairs(will) do
        if was[field] ~= value then redis.call('HSET', key, field, value) end
    end
    for field in pairs(was) do
        if will[field] == nil then redis.call('HDEL', key, field) end
    end
end

local function write_contents(key, kind, before, after)
    if kind == 'none' then
        redis.call('UNLINK', key)
    elseif kind == 'string' then
        redis.call('SET', key, after[1], 'KEEPTTL')
    else
        write_hash(key, before, after)
    end
end

local function is_valid(kind, contents)
    if kind == 'none' then return #contents == 0 end
    if kind == 'string' then return #contents == 1 end
    return #contents > 0 and #contents % 2 == 0 and #contents <= MAX_WORDS
end

local function split(ARGV, count)
    local seen, contents, bytes = {}, {}, 0
    for i = 4, #ARGV do
        bytes = bytes + #ARGV[i]
        table.insert(i - 3 <= count and seen or contents, ARGV[i])
    end
    return seen, contents, bytes
end

local function check_arguments(key, seen, new_kind)
    local is_ours = key == '' or string.match(key, '^[%w_.:-]+:{[%a_][%w_.-]*:%d+}:')
    arguments.need(not is_ours, 'this key is one of a machine, and only its functions write it')
    arguments.need(kinds[seen or ''] and kinds[new_kind or ''], 'the kinds are none, string and hash')
    local stays = seen == 'none' or new_kind == 'none' or seen == new_kind
    arguments.need(stays, 'a ' .. seen .. ' stays one, or is deleted')
end

return function(KEYS, ARGV)
    local key, seen, new_kind = KEYS[1], ARGV[1], ARGV[2]
    local is_look = seen == 'look'
    check_arguments(key, is_look and 'none' or seen, is_look and 'none' or new_kind)
    local count = arguments.need_count('how many words were seen', ARGV[3], 0, MAX_WORDS)
    local before, after, bytes = split(ARGV, count)
    local fits = is_look or is_valid(seen, before) and is_valid(new_kind, after) and #before == count
    arguments.need(fits, 'a string is one value, a hash 1 to ' .. MAX_WORDS / 2 .. ' fields with their values')
    arguments.need(bytes <= MAX_BYTES, 'contents have at most ' .. MAX_BYTES .. ' bytes')
    local kind = redis.call('TYPE', key).ok
    if not kinds[kind] then error('the key is a ' .. kind .. ': only a string or a hash can be compared', 0) end
    local there = read_contents(key, kind) or error('the key is too large to be compared at each change', 0)
    if is_look or kind ~= seen or not is_same(kind, there, before) then return { replies.CONFLICT, kind, unpack(there) } end
    write_contents(key, new_kind, before, after)
    return { replies.OK }
end
