-- needs: arguments, keys, replies
-- sb_grant: lets machines go on sending to one whose definition does not say who may (`accepts`); until a version says so.
-- KEYS:    1 root of the partition
-- ARGV:    1 names of machines, between spaces, or '' for none · 2 'once' to leave what was granted before, 'open' to take
--          it from nobody until somebody has looked who sends, or ''
-- Returns: {OK, the names that are granted from now on} · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
local MAX_NAMES, NAME = 1000, '^[%a_][%w_.-]*$'

local function misfit(names)
    local count = 0
    for name in string.gmatch(names, '%S+') do
        count = count + 1
        if #name > 64 or not string.find(name, NAME) then return 'no machine can be called ' .. string.sub(name, 1, 80) end
    end
    return count > MAX_NAMES and 'at most ' .. MAX_NAMES .. ' machines can be granted' or nil
end

return function(KEYS, ARGV)
    local root, names, manner = KEYS[1], ARGV[1] or '', ARGV[2] or ''
    local bad = arguments.check_present(ARGV[1], 'the names') or misfit(names)
    if manner ~= '' and manner ~= 'once' and manner ~= 'open' then bad = bad or 'the manners are once and open' end
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local meta = redis.call('HMGET', keys.meta(root), 'current', 'granted')
    if not meta[1] then return { replies.NO_MACHINE } end
    if manner == 'once' and meta[2] then return { replies.OK, meta[2] } end
    if manner == 'open' then
        redis.call('HDEL', keys.meta(root), 'granted')
        return { replies.OK, '' }
    end
    redis.call('HSET', keys.meta(root), 'granted', names)
    return { replies.OK, names }
end
