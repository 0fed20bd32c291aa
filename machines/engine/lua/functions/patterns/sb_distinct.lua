-- needs: arguments, calendar, cardinality, replies
-- sb_distinct: adds members to those of the current day; a repeated member changes nothing.
-- KEYS:    1 root of the counter
-- ARGV:    1 part (a text, or '') · 2 exact: members up to which the day also has a set (0 to 10000) · 3 keep: days that a
--          day is kept after its end (1 to 400) · 4 now (ms, or '') · 5 a member, then further ones (1 to 1000)
-- Returns: {OK, growth of the day's count} · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(members); once in a day O(exact), when its set is deleted
local MAX_MEMBERS, MAX_EXACT, MAX_KEEP, MAX_BYTES = 1000, 10000, 400, 2048

local function check_arguments(ARGV)
    local now = ARGV[4]
    if #ARGV < 5 or #ARGV > MAX_MEMBERS + 4 then return 'there are 1 to ' .. MAX_MEMBERS .. ' members' end
    if not arguments.parse_count(ARGV[2], 0, MAX_EXACT) then return 'exact is a whole number from 0 to ' .. MAX_EXACT end
    if not arguments.parse_count(ARGV[3], 1, MAX_KEEP) then return 'keep is in days, from 1 to ' .. MAX_KEEP end
    if #ARGV[1] > MAX_BYTES then return 'a part has at most ' .. MAX_BYTES .. ' bytes' end
    for i = 5, #ARGV do
        if #ARGV[i] == 0 or #ARGV[i] > MAX_BYTES then return 'a member has 1 to ' .. MAX_BYTES .. ' bytes' end
    end
    return arguments.check('', '', '', '', now)
end

return function(KEYS, ARGV)
    local bad = check_arguments(ARGV)
    if bad then return { replies.BAD_ARGUMENT, bad } end
    local now = arguments.read_now(ARGV[4])
    local bucket = {
        day = calendar.day_of(now), part = ARGV[1], exact = tonumber(ARGV[2]), keep = tonumber(ARGV[3]) * calendar.DAY, now = now,
    }
    return { replies.OK, cardinality.add(KEYS[1], bucket, { unpack(ARGV, 5) }) }
end
