-- needs: keys, replies, slots
-- Where an instance is that this partition does not hold, in a machine whose number of partitions has grown. `grown` in the
-- meta of a partition is `<from>:<to>:<run>`: the numbers before and after, and the latest run of the command that moves. An
-- instance is in its old partition, crc16(id) % from, until it has moved to its new one, crc16(id) % to. From the moment
-- `grown` is written, no new instance comes into an old partition that is not its new one, too.
local redirects = {}

-- Reads {from, to, run} of a partition; nil for a machine that never grew.
function redirects.read_growth(root)
    local text = redis.call('HGET', keys.meta(root), 'grown')
    if not text then return nil end
    local from, to, run = string.match(text, '^(%d+):(%d+):(%d+)$')
    return from and { from = tonumber(from), to = tonumber(to), run = tonumber(run) } or nil
end

local function name_root(root, number)
    return (string.gsub(root, ':%d+}$', ':' .. number .. '}'))
end

function redirects.is_home(root, growth, id)
    return slots.crc16(id) % growth.to == slots.get_number(root)
end

-- Builds the reply for an id that this partition does not hold: {MOVED, root} to ask there, {MOVING} while the instance is
-- between the two; nil when it does not exist, as far as this partition knows.
function redirects.build(root, id)
    local growth = redirects.read_growth(root)
    if not growth then return nil end
    local crc, here = slots.crc16(id), slots.get_number(root)
    local before, after = crc % growth.from, crc % growth.to
    if here == after then
        return redis.call('HGET', keys.staged(root), id) and { replies.MOVING } or nil
    end
    return { replies.MOVED, name_root(root, here == before and after or before) }
end

return redirects
