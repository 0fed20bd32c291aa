-- Days and what is made of them, in UTC. A day is its number since 1970-01-01.
local calendar = {}

calendar.DAY = 86400000 -- ms

-- The day of its month, 1 to 31: by years of 365.2425 days that begin in March, so that the day put in comes last.
local function day_of_month(day)
    local shifted = day + 719468 -- since 0000-03-01
    local of_era = shifted % 146097
    local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
    local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
    local month = math.floor((5 * of_year + 2) / 153)
    return of_year - math.floor((153 * month + 2) / 5) + 1
end

local firsts = {
    day = function(day) return day end,
    week = function(day) return day - (day + 3) % 7 end, -- 1970-01-01 was a Thursday; weeks begin on Monday
    month = function(day) return day - day_of_month(day) + 1 end,
}
local lengths = { day = 1, week = 7, month = 31 } -- at most; one step of that far leads into the next period

function calendar.day(ms) return math.floor(ms / calendar.DAY) end

-- First and last day of the day, week or month that `day` lies in; nil where the period is none of these.
function calendar.around(period, day)
    local first_of = firsts[period]
    if not first_of then return nil end
    local first = first_of(day)
    return first, first_of(first + lengths[period]) - 1
end

return calendar
