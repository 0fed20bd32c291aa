-- needs: arguments, group_limits, json, keys, queue_limits, replies, slots
-- Which version new instances get: the current one, or the one that is rolled out to a share of them. The meta of a
-- partition has `current`; `rollout`: `<hundredths of a percent> <version>:<digest> <JSON>`, 0 for a roll-out that was
-- stopped; `pin`: JSON of the version that stays current, `next` is what becomes current without the pin; `withdrawn`:
-- JSON, definition -> who and why. Partition 0 decides: each change there increments `turn`, and is copied to the others,
-- which take a copy only of a later turn.
local version_policy = {}

local BUCKETS, MAX_SETTINGS = 10000, 16384
local match, sub, find = string.match, string.sub, string.find

version_policy.BUCKETS = BUCKETS

-- Parses the share of a roll-out; ends the call with BADARG for anything else.
function version_policy.parse_share(text)
    return arguments.need(arguments.parse_count(text, 0, BUCKETS - 1), 'a share is 0 to 9999 hundredths of a percent')
end

-- Parses the settings of a roll-out, JSON or ''; ends the call with BADARG for anything else.
function version_policy.parse_settings(text)
    if (text or '') == '' then return {} end
    arguments.need(#text <= MAX_SETTINGS, 'the settings have at most ' .. MAX_SETTINGS .. ' bytes')
    local ok, found = pcall(cjson.decode, text)
    return arguments.need(ok and type(found) == 'table' and found, 'the settings are a JSON object')
end

-- Answers the place of an id in a roll-out, 0 to 9999: the first 8 hexadecimal digits of SHA-1 of `<version>:<id>`, modulo
-- 10000. An id has the new version at every share above its place.
function version_policy.find_bucket(version, id)
    return tonumber(sub(redis.sha1hex(version .. ':' .. id), 1, 8), 16) % BUCKETS
end

-- Chooses the definition of a new instance that names no version.
local function choose(id, current, rollout)
    if not rollout then return current end
    local share, def = match(rollout, '^(%d+) (%d+:%x+) ')
    share = tonumber(share or 0)
    if share > 0 and version_policy.find_bucket(match(def, '^%d+'), id) < share then return def end
    return current
end

local function has_withdrawn(text, def)
    return text and find(text, '"' .. def .. '"', 1, true) ~= nil
end

-- Builds the reply for a change that the versions do not allow; `code` is stable.
function version_policy.refuse(code, why)
    return { replies.VERSIONS, code, why }
end

-- Answers the definition of a new instance, of a version or of any; nil and a reply when there is none.
function version_policy.find_definition(root, version, id)
    if version == '' then
        local row = redis.call('HMGET', keys.meta(root), 'current', 'rollout')
        if not row[1] then return nil, { replies.NO_MACHINE } end
        return choose(id, row[1], row[2])
    end
    local row = redis.call('HMGET', keys.meta(root), 'def:' .. version, 'withdrawn')
    if not row[1] then return nil, { replies.NO_MACHINE } end
    if has_withdrawn(row[2], row[1]) then
        return nil, version_policy.refuse('SB625', 'version ' .. version .. ' is withdrawn: no new instance gets it')
    end
    return row[1]
end

-- Tells whether the partition is the first one, which decides.
function version_policy.is_first(root)
    return slots.get_number(root) == 0
end

-- Reads the policy: {turn, current, rollout, pin, withdrawn}; `rollout` is {share, def, ...}. What there is none of is nil.
function version_policy.read(root)
    local row = redis.call('HMGET', keys.meta(root), 'turn', 'current', 'rollout', 'pin', 'withdrawn')
    local policy = { turn = tonumber(row[1] or 0), current = row[2] or nil, withdrawn = {} }
    if row[3] then
        local share, def, text = match(row[3], '^(%d+) (%d+:%x+) (.*)$')
        policy.rollout = cjson.decode(text)
        policy.rollout.share, policy.rollout.def = tonumber(share), def
    end
    if row[4] then policy.pin = cjson.decode(row[4]) end
    if row[5] then policy.withdrawn = cjson.decode(row[5]) end
    return policy
end

-- Encodes a roll-out as its text in the meta.
function version_policy.encode_rollout(rollout)
    local rest = {}
    for name, value in pairs(rollout) do
        if name ~= 'share' and name ~= 'def' then rest[name] = value end
    end
    return rollout.share .. ' ' .. rollout.def .. ' ' .. cjson.encode(rest)
end

local function put(root, name, text)
    if text then redis.call('HSET', keys.meta(root), name, text) else redis.call('HDEL', keys.meta(root), name) end
end

-- Writes roll-out, pin and withdrawn versions, as texts; nil for none.
function version_policy.write_texts(root, rollout, pin, withdrawn)
    put(root, 'rollout', rollout)
    put(root, 'pin', pin)
    put(root, 'withdrawn', withdrawn)
end

-- Writes a changed policy; on the first partition that is the next turn.
function version_policy.write(root, policy)
    version_policy.write_texts(root, policy.rollout and version_policy.encode_rollout(policy.rollout),
        policy.pin and cjson.encode(policy.pin), next(policy.withdrawn) and cjson.encode(policy.withdrawn) or nil)
    if version_policy.is_first(root) then redis.call('HINCRBY', keys.meta(root), 'turn', 1) end
end

-- The limits of the current version apply to all queues, also those that only earlier versions use. `only`: the queues to
-- declare, a set; nil for all.
function version_policy.store_limits(root, source, only)
    local declared = source.limits or {}
    for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do
        if not only or only[queue] then
            local row = declared[queue] or {}
            queue_limits.declare(root, queue, row)
            group_limits.declare(root, queue, row.groups or {})
        end
    end
end

-- Makes a stored version the current one, with its limits; nil, or why that is not possible.
function version_policy.make_current(root, def)
    local row = redis.call('HMGET', keys.definition(root, match(def, '^%d+')), 'digest', 'program')
    if not row[2] or row[1] ~= match(def, ':(%x+)$') then return 'version ' .. match(def, '^%d+') .. ' is not published here' end
    if redis.call('HGET', keys.meta(root), 'current') == def then return nil end
    local source = cjson.decode(row[2])
    redis.call('HSET', keys.meta(root), 'current', def)
    version_policy.store_limits(root, source)
    return nil
end

return version_policy
