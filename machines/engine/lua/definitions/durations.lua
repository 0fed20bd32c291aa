-- needs: values
-- Parses durations of definitions to ms: a number, or text such as "1.5s".
local durations = {}

local MAX_MS = 3.2e11 -- ten years
local UNITS = { [''] = 1, ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000 }

function durations.parse(value)
    local number = value
    if type(value) == 'string' then
        local digits, unit = string.match(value, '^%s*(%d*%.?%d+)%s*(%a*)%s*$')
        number = digits and UNITS[unit] and tonumber(digits) * UNITS[unit]
    end
    if type(number) ~= 'number' or not (number >= 0 and number <= MAX_MS) then
        values.fail('a delay is a number of ms or text such as "1.5s", up to ten years, not ' .. values.describe(value))
    end
    return math.floor(number + 0.5)
end

return durations
