-- needs: due_times, group_limits, keys, packed_jobs, queue_limits, slots
-- Admissions of leased jobs by the home of their group, or of their queue as the group '', which so counts the jobs of all
-- partitions of a machine. A job runs once it is admitted, under its token: so an admission whose token no longer holds its job
-- is one of an attempt that ended, and can be freed at any time. Partitions that were refused are members, too (letter w), until
-- a place is offered to them.
local group_admissions = {}

local call = redis.call
local BUSY_CHECK, CHECK = 1000, 60000 -- ms after which an admission is checked: where jobs were refused, and at all
local LISTED, MAX_LISTED = 10000, 20000 -- leased jobs that are counted when a limit is set, and that are remembered
local MOST = 20 -- admissions that one call names for a check
local MAX_LOST = 5000 -- places that are remembered until a tick

-- Root -> places of jobs that their workers no longer hold: queue, home, group, job and token of each in turn. A tick has them
-- freed, and offered to others. Lost when the server restarts: then a check finds them.
local lost, lost_count = {}, 0

-- Root -> job -> its queue, group, token and homes: jobs that were leased when a limit was set. Their workers do not free the
-- places until they renew the leases. Lost as those.
local listed, listed_count = {}, 0

local function make_admission(group, job, token)
    return group_limits.make_member(group, 'l', job .. ' ' .. token)
end

local function make_waiting(group, partition)
    return group_limits.make_member(group, 'w', string.format('%05d', partition))
end

-- Finds the admission of an earlier attempt of a job, as a member.
local function find_earlier(key, group, job)
    local head = group_limits.make_member(group, 'l', job)
    return call('ZRANGEBYLEX', key, '[' .. head .. ' ', '(' .. head .. '!', 'LIMIT', 0, 1)[1]
end

local function remove(root, queue, member)
    call('ZREM', keys.admitted(root, queue), member)
    return call('ZREM', keys.members(root, queue), member) == 1
end

-- Forgets an admission where nothing counts it any more, and a partition that has waited for long: it would have asked again.
function group_admissions.drop_unneeded(root, queue, member, now)
    local group, letter = group_limits.parse_member(member)
    local rules, since = group_limits.read(root, queue, group), call('ZSCORE', keys.admitted(root, queue), member)
    local is_counted = letter == 'w' or rules and rules.concurrency
    if not is_counted or letter == 'w' and tonumber(since or 0) < now - CHECK then remove(root, queue, member) end
end

-- Computes the ms after which a partition asks again for a group with a rate: those that wait do so one after the other, each
-- has one turn. The latest turn that was given, and that of each, are noted beside the clock of the rate.
local function give_turn(root, queue, group, partition, rules, wait, now)
    local key, others = keys.arrivals(root, queue), group_limits.count(root, queue, group, 'w') - 1
    local last = now + wait + rules.interval * others
    local own = tonumber(call('ZSCORE', key, group .. '\0' .. partition) or 0)
    if own >= now + wait and own <= last then return math.ceil(own - now) end
    local latest = tonumber(call('ZSCORE', key, group .. '\0') or 0)
    local turn = math.min(math.max(now + wait, latest + rules.interval), last)
    call('ZADD', key, turn, group .. '\0', turn, group .. '\0' .. partition)
    return math.ceil(turn - now)
end

-- Counts a job that runs under its token, also above the limit.
function group_admissions.keep(root, queue, group, job, token, now)
    local member = make_admission(group, job, token)
    if call('ZSCORE', keys.members(root, queue), group_limits.make_member(group, 'l', job)) then return end
    if call('ZADD', keys.members(root, queue), 0, member) == 1 then call('ZADD', keys.admitted(root, queue), now, member) end
end

-- Admits a job that another partition, or this one, has leased. `has_more`: its partition holds further jobs of the group.
-- Answers 'held', 'free' where nothing counts it, 'busy', or the ms after which to ask again.
function group_admissions.admit(root, queue, group, job, token, has_more, now)
    local key, rules = keys.members(root, queue), group_limits.read(root, queue, group)
    if not rules then return 'free' end
    local earlier, waiting = find_earlier(key, group, job), make_waiting(group, string.match(job, '^%d+'))
    if earlier == make_admission(group, job, token) then return 'held' end -- the call came twice
    local leased = rules.concurrency and group_limits.count(root, queue, group, 'l') - (earlier and 1 or 0) or 0
    local room, why = queue_limits.compute_allowance(rules, leased, 1, now)
    if room == 0 or has_more then
        call('ZADD', key, 0, waiting)
        call('ZADD', keys.admitted(root, queue), now + CHECK - BUSY_CHECK, waiting)
    else
        remove(root, queue, waiting)
    end
    if room == 0 then
        return type(why) == 'number' and give_turn(root, queue, group, string.match(job, '^%d+'), rules, why, now) or 'busy'
    end
    if earlier then remove(root, queue, earlier) end
    group_limits.count_arrival(root, queue, group, rules, 1, now)
    if not rules.concurrency then return 'free' end
    group_admissions.keep(root, queue, group, job, token, now)
    return 'held'
end

-- Frees the places of jobs whose attempts have ended: `freed` holds group, job and token of each in turn; the job 3-0 is for a
-- place that was offered to partition 3 in vain. Answers the offers to make: partition, group and the number of its places, in
-- turn. Partitions take turns. `unrun`: the jobs did not run, and do not count against the rate.
function group_admissions.free(root, queue, freed, now, unrun)
    local groups, offers = {}, {}
    for i = 1, #freed, 3 do
        local group, job = freed[i], freed[i + 1]
        local was_there = remove(root, queue, make_admission(group, job, freed[i + 2]))
        local is_uncounted = unrun and not (group_limits.read(root, queue, group) or {}).concurrency
        if was_there or is_uncounted or string.sub(job, -2) == '-0' then
            groups[group] = groups[group] or { count = 0, partition = string.match(job, '^%d+') }
            groups[group].count = groups[group].count + 1
        end
    end
    for group, one in pairs(groups) do
        local rules, key = group_limits.read(root, queue, group), keys.members(root, queue)
        local leased = rules and rules.concurrency and group_limits.count(root, queue, group, 'l') or 0
        if rules and unrun then
            group_limits.count_arrival(root, queue, group, rules, -one.count, now)
            rules = group_limits.read(root, queue, group)
        end
        local room = rules and queue_limits.compute_allowance(rules, leased, one.count, now) or 0
        local first, last = group_limits.list_ranges(group, 'w')
        local here = make_waiting(group, one.partition)
        local found = room > 0 and call('ZRANGEBYLEX', key, '(' .. here, last, 'LIMIT', 0, room) or {}
        if #found < room then
            local others = call('ZRANGEBYLEX', key, first, '[' .. here, 'LIMIT', 0, room - #found)
            for i = 1, #others do found[#found + 1] = others[i] end
        end
        for i, member in ipairs(found) do
            remove(root, queue, member)
            local _, _, partition = group_limits.parse_member(member)
            local places = math.floor(room / #found) + (i <= room % #found and 1 or 0)
            local at = #offers
            offers[at + 1], offers[at + 2], offers[at + 3] = tonumber(partition), group, places
        end
    end
    return offers
end

-- Finds the homes that count a job of a group, '' for none: the number of each, and '' for the queue or the group, in turn.
-- `known`: what was found for others.
function group_admissions.find_homes(root, queue, group, known)
    local homes = {}
    for _, name in ipairs({ '', group ~= '' and group or nil }) do
        local word = queue .. '\0' .. name
        if known[word] == nil then
            local rules = group_limits.read(root, queue, name)
            known[word] = rules and rules.concurrency and rules.home or false
        end
        if known[word] then homes[#homes + 1], homes[#homes + 2] = known[word], name end
    end
    return homes
end

-- Has the places freed of a job that its worker no longer holds: at once where this partition is the home, which the next tick
-- then offers as one of the job 0, and by the next tick where another is. `row`: queue, group, token, and the homes of a listed
-- job, which its worker may free before that.
function group_admissions.abandon(root, job, row)
    local homes = row.homes or group_admissions.find_homes(root, row.queue, row.group or '', {})
    for i = 1, #homes, 2 do
        local home, group, named, token = homes[i], homes[i + 1], job, row.token or ''
        if home == slots.get_number(root) then
            local admission = make_admission(group, job, token)
            if not row.homes then remove(root, row.queue, admission) end
            local is_there = call('ZSCORE', keys.members(root, row.queue), admission)
            if not is_there then named, token = home .. '-0', '' end
        end
        if lost_count >= MAX_LOST then lost, lost_count = {}, 0 end
        lost[root], lost_count = lost[root] or {}, lost_count + 1
        for _, word in ipairs({ row.queue, home, group, named, token }) do table.insert(lost[root], word) end
        due_times.note(root, 0, 0)
    end
end

-- Has the places freed of a job that ended and that was leased before a limit was set.
function group_admissions.end_listed(root, job)
    local row = listed_count > 0 and listed[root] and listed[root][job]
    if not row then return end
    listed[root][job], listed_count = nil, listed_count - 1
    group_admissions.abandon(root, job, row)
end

-- Answers these places, and forgets them; nil for none.
function group_admissions.take_lost(root)
    local found = lost[root]
    if found then lost[root], lost_count = nil, lost_count - #found / 5 end
    return found
end

-- Lists admissions to check, which come last in the next check: group, job and token of each in turn.
function group_admissions.list_unchecked(root, queue, is_busy, now)
    local key, found = keys.admitted(root, queue), {}
    local before = now - (is_busy and BUSY_CHECK or CHECK)
    local due = call('ZRANGEBYSCORE', key, '-inf', before, 'LIMIT', 0, MOST)
    if not due[1] then due = call('ZRANGEBYSCORE', key, '(' .. now + CHECK, '+inf', 'LIMIT', 0, MOST) end -- the clock was set
    for _, member in ipairs(due) do
        local group, letter, rest = group_limits.parse_member(member)
        if letter == 'w' then
            remove(root, queue, member) -- it would have asked again: its jobs are gone
        else
            call('ZADD', key, now, member)
            local at = #found
            found[at + 1], found[at + 2], found[at + 3] = group, string.match(rest, '^(%S+) (.+)$')
        end
    end
    return found
end

local function list_job(root, job, row, homes)
    if listed_count >= MAX_LISTED then listed, listed_count = {}, 0 end
    listed[root] = listed[root] or {}
    listed_count = listed_count + (listed[root][job] and 0 or 1)
    row.homes, listed[root][job] = homes, row
end

-- Lists the leased jobs of a queue that homes have to count: home, group, job and token of each in turn.
function group_admissions.list_leased(root, queue)
    local found, known = {}, {}
    if call('EXISTS', keys.rules(root, queue)) == 0 then return found end
    for _, job in ipairs(call('ZRANGE', keys.leased(root, queue), 0, LISTED - 1)) do
        local row = packed_jobs.read(keys.job(root, job), 'group', 'token')
        local homes = row and row.token and group_admissions.find_homes(root, queue, row.group or '', known) or {}
        if homes[1] then list_job(root, job, row, homes) end
        for i = 1, #homes, 2 do
            local at = #found
            found[at + 1], found[at + 2], found[at + 3], found[at + 4] = homes[i], homes[i + 1], job, row.token
        end
    end
    return found
end

-- Counts the leased jobs of a queue of which this partition is the home.
function group_admissions.count_leased(root, queue, now)
    local found, here = group_admissions.list_leased(root, queue), slots.get_number(root)
    for i = 1, #found, 4 do
        if found[i] == here then group_admissions.keep(root, queue, found[i + 1], found[i + 2], found[i + 3], now) end
    end
end

return group_admissions
