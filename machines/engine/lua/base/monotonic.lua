-- needs: arguments
-- Numbers that only grow: the next one is larger than the last and at least the clock in ms. So they keep growing when the
-- last one was lost, by a failover that had not replicated it or with a deleted key.
local monotonic = {}

monotonic.MOST = 2 ^ 53 - 1

-- Answers the number after `last`, the stored text or false; nil when it would exceed exact integers. `owner` names the
-- key's owner in the error.
function monotonic.next(last, now, owner)
    local number = 0
    if last then
        number = arguments.parse_count(last, 0, monotonic.MOST) or error(owner .. ' is damaged: another program wrote its key', 0)
    end
    number = math.max(number + 1, now)
    return number <= monotonic.MOST and number or nil
end

function monotonic.format(number) return string.format('%d', number) end

return monotonic
