-- needs: arguments, calendar, cardinality, replies
-- sb_distinct: adds members to those of the current day; a repeated member changes nothing.
-- KEYS:    1 root of the counter
-- ARGV:    1 part (a text, or '') · 2 exact: members up to which the day also has a set (0 to 10000) · 3 keep: days that a
--          day is kept after its end (1 to 400) · 4 now (ms, or '') · 5 a member, then further ones (1 to 1000)
-- Returns: {OK, growth of the day's count} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(members); once in a day O(exact), when its set is deleted
local MAX_MEMBERS, MAX_EXACT, MAX_KEEP, MAX_BYTES = 1000, 10000, 400, 2048

return function(KEYS, ARGV)
    arguments.need(#ARGV >= 5 and #ARGV <= MAX_MEMBERS + 4, 'there are 1 to ' .. MAX_MEMBERS .. ' members')
    local exact = arguments.need_count('exact', ARGV[2], 0, MAX_EXACT)
    local keep = arguments.need_count('keep, in days,', ARGV[3], 1, MAX_KEEP)
    arguments.need(#ARGV[1] <= MAX_BYTES, 'a part has at most ' .. MAX_BYTES .. ' bytes')
    for i = 5, #ARGV do
        arguments.need(#ARGV[i] > 0 and #ARGV[i] <= MAX_BYTES, 'a member has 1 to ' .. MAX_BYTES .. ' bytes')
    end
    local now = arguments.need_now(ARGV[4])
    local bucket = { day = calendar.day_of(now), part = ARGV[1], exact = exact, keep = keep * calendar.DAY, now = now }
    return { replies.OK, cardinality.add(KEYS[1], bucket, { unpack(ARGV, 5) }) }
end
