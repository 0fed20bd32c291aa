-- needs: arguments
-- Numbers that only grow: one more than the last, and never behind the clock (ms). So they go on growing also where the
-- last one was lost: with a failover that had not copied it yet, or with a key that was removed.
local monotonic = {}

monotonic.MOST = 2 ^ 53 - 1

-- `last`: as it is kept, or false. nil where no larger one can be counted exactly.
function monotonic.after(last, now, where)
    local number = 0
    if last then
        number = arguments.count(last, 0, monotonic.MOST) or error(where .. ' is damaged: another program wrote its key', 0)
    end
    number = math.max(number + 1, now)
    return number <= monotonic.MOST and number or nil
end

function monotonic.text(number) return string.format('%d', number) end

return monotonic
