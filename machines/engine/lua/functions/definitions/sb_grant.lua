-- needs: arguments, keys, replies
-- sb_grant: lets machines go on sending to a machine whose definition declares no `accepts`, until a version declares it.
-- KEYS:    1 root of the partition
-- ARGV:    1 names of machines, between spaces, or '' for none · 2 'once' to keep an earlier grant, 'open' to remove the
--          grant, so that all senders are accepted, or ''
-- Returns: {OK, the names granted from now on} · {NOMACHINE} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
local MAX_NAMES, NAME = 1000, '^[%a_][%w_.-]*$'

local function check_names(names)
    local count = 0
    for name in string.gmatch(names, '%S+') do
        count = count + 1
        if #name > 64 or not string.find(name, NAME) then return 'no machine can be called ' .. string.sub(name, 1, 80) end
    end
    return count > MAX_NAMES and 'at most ' .. MAX_NAMES .. ' machines can be granted' or nil
end

return function(KEYS, ARGV)
    local root, names, mode = KEYS[1], ARGV[1] or '', ARGV[2] or ''
    arguments.refuse(arguments.check_present(ARGV[1], 'the names') or check_names(names))
    arguments.need(mode == '' or mode == 'once' or mode == 'open', 'the modes are once and open')
    local meta = redis.call('HMGET', keys.meta(root), 'current', 'granted')
    if not meta[1] then return { replies.NO_MACHINE } end
    if mode == 'once' and meta[2] then return { replies.OK, meta[2] } end
    if mode == 'open' then
        redis.call('HDEL', keys.meta(root), 'granted')
        return { replies.OK, '' }
    end
    redis.call('HSET', keys.meta(root), 'granted', names)
    return { replies.OK, names }
end
