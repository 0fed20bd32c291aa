-- needs: arguments, keys, pulse, replies, version_policy
-- sb_rollout_copy: copies to a partition what the first one has decided: the current version, roll-out, pin and withdrawn
--          versions. A copy of an earlier turn changes nothing, so copies may come in any order and repeatedly.
-- KEYS:    1 root of the partition
-- ARGV:    1 turn · 2 current, <version>:<digest> · 3 rollout · 4 pin · 5 withdrawn: the texts of the first partition's
--          meta, '' for none
-- Returns: {OK, 1 changed or 0 not} · {NOMACHINE} · {BADARG, why} · {FAULT, why} the current version is not stored here
-- Notifies: <root>:pulse
-- Cost:    O(queues + size of a definition) where another version becomes current, else O(1)
local MAX_TURN, MAX_TEXT = 1e15, 65536

local function check_text(text, pattern, what)
    if text == '' then return nil end
    if #text > MAX_TEXT then return what .. ' has at most ' .. MAX_TEXT .. ' bytes' end
    local body = string.match(text, pattern)
    local ok, found = pcall(cjson.decode, body or '')
    if not ok or type(found) ~= 'table' then return what .. ' is not what a partition holds' end
    return nil
end

local function check(ARGV)
    if not arguments.parse_count(ARGV[1] or '', 0, MAX_TURN) then return 'a turn is a whole number' end
    if not string.find(ARGV[2] or '', '^%d+:%x+$') then return 'a definition is named <version>:<digest>' end
    return check_text(ARGV[3] or '', '^%d+ %d+:%x+ (.*)$', 'a roll-out') or check_text(ARGV[4] or '', '^.*$', 'a pin')
        or check_text(ARGV[5] or '', '^.*$', 'the list of withdrawn versions')
end

local function to_text(text)
    return (text or '') ~= '' and text or nil
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    arguments.refuse(arguments.check_root(root) or check(ARGV))
    local held = redis.call('HMGET', keys.meta(root), 'current', 'turn')
    if not held[1] then return { replies.NO_MACHINE } end
    if tonumber(ARGV[1]) < tonumber(held[2] or 0) then return { replies.OK, 0 } end
    local why = version_policy.make_current(root, ARGV[2])
    if why then return { replies.FAULT, why } end
    version_policy.write_texts(root, to_text(ARGV[3]), to_text(ARGV[4]), to_text(ARGV[5]))
    redis.call('HSET', keys.meta(root), 'turn', ARGV[1])
    pulse.ring(root)
    return { replies.OK, 1 }
end
