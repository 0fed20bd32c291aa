-- Calendar periods in UTC. A day is its number since 1970-01-01.
local calendar = {}

calendar.DAY = 86400000 -- ms

-- Computes the day of the month, 1 to 31, with years of 365.2425 days that begin in March, so that the leap day is the last.
local function day_of_month(day)
    local shifted = day + 719468 -- days since 0000-03-01
    local day_of_era = shifted % 146097
    local leap_days = math.floor(day_of_era / 1460) - math.floor(day_of_era / 36524) + math.floor(day_of_era / 146096)
    local year = math.floor((day_of_era - leap_days) / 365)
    local day_of_year = day_of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
    local month = math.floor((5 * day_of_year + 2) / 153)
    return day_of_year - math.floor((153 * month + 2) / 5) + 1
end

local first_days = {
    day = function(day) return day end,
    week = function(day) return day - (day + 3) % 7 end, -- 1970-01-01 was a Thursday; weeks begin on Monday
    month = function(day) return day - day_of_month(day) + 1 end,
}
local lengths = { day = 1, week = 7, month = 31 } -- days, at most: this many days after its first day the next period has begun

function calendar.day_of(ms) return math.floor(ms / calendar.DAY) end

-- Answers the first and the last day of the day, week or month around `day`; nil for any other period.
function calendar.find_period(period, day)
    local first_of = first_days[period]
    if not first_of then return nil end
    local first = first_of(day)
    return first, first_of(first + lengths[period]) - 1
end

return calendar
