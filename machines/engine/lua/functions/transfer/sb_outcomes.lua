-- needs: arguments, keys, replies
-- sb_outcomes: reads outcomes that are stored under idempotency keys, or stores them where their instances have moved to.
-- KEYS:    1 root of the partition
-- ARGV:    1 read | write · 2 the part of a key behind the root · for read, then further ones (at most 500) · for write, then
--          its outcome (JSON), the ms it is kept, and so on, three for each (at most 500)
-- Returns: {OK, outcome (JSON) or '', ms, ...} for read · {OK, how many were stored} for write: others are there already ·
--          {BADARG, why}
-- Notifies: nothing
-- Cost:    O(keys)
local MAX_KEYS, MAX_MS = 500, 86400000
local SUFFIX = '^:[kc]:%d+:.'

local function read(root, ARGV)
    local reply = { replies.OK }
    for i = 2, #ARGV do
        local stored = redis.call('GET', root .. ARGV[i])
        local ok, outcome = pcall(cmsgpack.unpack, stored or '')
        local fits = stored and ok and type(outcome) == 'table'
        reply[#reply + 1] = fits and cjson.encode(outcome) or ''
        reply[#reply + 1] = math.max(0, redis.call('PTTL', root .. ARGV[i]))
    end
    return reply
end

local function write(root, ARGV)
    local stored = 0
    for i = 2, #ARGV, 3 do
        local ok, outcome = pcall(cjson.decode, ARGV[i + 1])
        local ms = arguments.parse_count(ARGV[i + 2], 1, MAX_MS)
        if ok and type(outcome) == 'table' and outcome[1] == replies.OK and ms then
            if redis.call('SET', root .. ARGV[i], cmsgpack.pack(outcome), 'NX', 'PX', ms) then stored = stored + 1 end
        end
    end
    return { replies.OK, stored }
end

return function(KEYS, ARGV)
    local root, step = KEYS[1], ARGV[1] == 'write' and 3 or 1
    arguments.refuse(arguments.check_root(root) or arguments.check_present(ARGV[2], 'the key'))
    arguments.need(ARGV[1] == 'read' or ARGV[1] == 'write', 'outcomes are read or written')
    local is_whole = (#ARGV - 1) % step == 0 and #ARGV <= MAX_KEYS * step + 1
    arguments.need(is_whole, 'at most ' .. MAX_KEYS .. ' keys, each complete')
    for i = 2, #ARGV, step do arguments.need(string.find(ARGV[i], SUFFIX), 'a key of an outcome begins with :k: or :c:') end
    return ARGV[1] == 'read' and read(root, ARGV) or write(root, ARGV)
end
