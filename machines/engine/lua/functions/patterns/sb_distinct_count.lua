-- needs: arguments, calendar, cardinality, replies
-- sb_distinct_count: counts the distinct members of a day, an ISO week or a month, and of those before it.
-- KEYS:    1 root of the counter
-- ARGV:    1 day | week | month · 2 how many periods (1 to 366; 372 days in all) · 3 a time within the last one (ms, or '')
--          · 4 a part, then further ones (1 to 8): a member of several counts once
-- Returns: {OK, ms at which the first period begins, count, exact 1|0, the same of the next, ...} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(days * parts), some 4 us for each sketch; exact unions also O(40000) for all their members
local MAX_PERIODS, MAX_DAYS, MAX_PARTS = 366, 372, 8
local MAX_COMPARED = 40000 -- members of all periods: some 20 ms; older periods are then estimated

return function(KEYS, ARGV)
    local first, last = calendar.find_period(ARGV[1] or '', 0)
    arguments.need(first, 'a period is day, week or month')
    local periods = arguments.parse_count(ARGV[2], 1, MAX_PERIODS)
    arguments.need(periods and periods * (last - first + 1) <= MAX_DAYS,
        'how many periods is a whole number, of ' .. MAX_DAYS .. ' days in all at most')
    arguments.need(#ARGV >= 4 and #ARGV <= MAX_PARTS + 3, 'there are 1 to ' .. MAX_PARTS .. ' parts')
    local reply, left, parts = { replies.OK }, MAX_COMPARED, { unpack(ARGV, 4) }
    local day = calendar.day_of((arguments.need_now(ARGV[3])))
    for i = periods, 1, -1 do
        first, last = calendar.find_period(ARGV[1], day)
        local place = i * 3 - 1
        local number, exact, compared = cardinality.count(KEYS[1], first, last, parts, left)
        reply[place], reply[place + 1], reply[place + 2] = first * calendar.DAY, number, exact
        left = left - compared
        day = first - 1
    end
    return reply
end
