-- needs: json, keys, queue_limits, slots
-- Limits of the groups of a queue: concurrency, rate and pause of each. A job of a limited group is held before it is ready:
-- it stands among the ready jobs behind all that can be taken. A take first makes ready as many held jobs as the limits of
-- their groups allow (held_jobs.lua), so that most takes pop nothing in vain, and checks the limits once more for each job.
-- <root>:q:<queue>:members names these jobs: the group, a zero byte, a letter (held, ready, leased), the job. Members of a
-- group are counted by their range; a job that is added or removed twice counts once. The letter of a held one is followed by
-- its place in the order of its group.
-- Of a machine with several partitions each group has a home among them, which counts the jobs of all: it admits those that
-- others have leased (group_admissions.lua) and, once it was asked for that, its own in the same way.
local group_limits = {}

local call = redis.call
local HELD = 2 ^ 47 -- added to the order of a held job, gives its score among the ready ones
local BAND = 2 ^ 43 -- of the orders of one priority
local NEXT = -2 ^ 50 -- of groups that the next take looks at
local LOOKED = -2 ^ 49 -- above the marks of these
local MAX_OWN = 10000 -- groups of a queue with limits of their own
local MAX_LEASED = 10000 -- leased jobs that are counted when a limit is set
local REST, REST_EACH, MAX_REST = 1000, 10, 30000 -- ms of a group whose home has no room; for each group that rests; at most
local FEW_MARKED, MAX_MARKED = 100, 1000 -- groups that are looked at in the order of their jobs; of more, all are, by name
group_limits.HELD = HELD

function group_limits.list_ranges(group, letter)
    local head = group .. '\0' .. letter
    return '[' .. head, '(' .. group .. '\0' .. string.char(string.byte(letter) + 1)
end

function group_limits.make_member(group, letter, job)
    return group .. '\0' .. letter .. job
end

local list_ranges, make_member = group_limits.list_ranges, group_limits.make_member

local function make_held(group, order, job)
    return make_member(group, 'h', string.format('%015.0f', order) .. job)
end

-- Parses a member: group, letter, job, and the score of a held one among the ready jobs.
function group_limits.parse_member(member)
    local group, letter, rest = string.match(member, '^(.-)%z(%l)(.*)$')
    if letter ~= 'h' then return group, letter, rest end
    return group, letter, string.sub(rest, 16), HELD + tonumber(string.sub(rest, 1, 15))
end

local function decode(text)
    local ok, found = pcall(cjson.decode, text or '{}')
    return ok and type(found) == 'table' and found or {}
end

-- Answers the number of the partition that admits the jobs of a group; nil where this one does so when it leases them.
local function find_home(root, group, homes, is_asked)
    local home = queue_limits.find_home(group, homes)
    return (is_asked or home ~= slots.get_number(root)) and home or nil
end

-- Reads the limits of a group, '' for the queue; nil when it has none. `declared`: those of all groups as text, where the caller
-- has read them.
function group_limits.read(root, queue, group, declared)
    if group == '' then return (queue_limits.read(root, queue)) end
    declared = declared or call('HGET', keys.rules(root, queue), 'groups')
    if not declared then return nil end
    local own, of_all = decode(call('HGET', keys.limits(root, queue), group) or nil), decode(declared)
    local rules = queue_limits.make(own.paused, own.concurrency or of_all.concurrency, own.rate or of_all.rate)
    if rules then
        local homes = of_all.homes or queue_limits.count_homes(root) -- the library before wrote none
        rules.home = find_home(root, group, homes, of_all.asked)
    end
    if rules and rules.interval then rules.tat = tonumber(call('ZSCORE', keys.arrivals(root, queue), group) or 0) end
    return rules
end

-- Counts the members of a group: 'r' or 'l'.
function group_limits.count(root, queue, group, letter)
    return call('ZLEXCOUNT', keys.members(root, queue), list_ranges(group, letter))
end

local count = group_limits.count

-- Lists the first held jobs of a group, as members.
function group_limits.list_held(root, queue, group, most)
    local from, to = list_ranges(group, 'h')
    return call('ZRANGEBYLEX', keys.members(root, queue), from, to, 'LIMIT', 0, most)
end

-- Has the next take look at a group, if it has held jobs; tells whether it has. Groups are looked at in the order of their jobs.
function group_limits.mark(root, queue, group)
    local first = group_limits.list_held(root, queue, group, 1)[1]
    if not first then return false end
    call('ZADD', keys.releases(root, queue), NEXT + tonumber(string.match(first, '(%d+)$')), group)
    return true
end

-- Reads when a take looks at a group: the ms to which it rests; below 0, the next one, and minus the number of places that
-- its home has for it.
local function read_mark(root, queue, group)
    return tonumber(call('ZSCORE', keys.releases(root, queue), group) or NEXT)
end

-- Has the next take make ready `places` held jobs of a group, for which its home has room; tells whether there are any.
function group_limits.offer(root, queue, group, places)
    if not group_limits.list_held(root, queue, group, 1)[1] then return false end
    local mark = read_mark(root, queue, group)
    call('ZADD', keys.releases(root, queue), (mark > LOOKED and math.min(mark, 0) or 0) - places, group)
    return true
end

-- Computes how long a group rests whose home has no room: an offer comes earlier, unless it is lost.
local function compute_rest(root, queue)
    return math.min(REST + REST_EACH * call('ZCARD', keys.releases(root, queue)), MAX_REST)
end

-- Lets a group rest whose home had no room, for some ms or as usual, unless there was an offer meanwhile. Answers for how long.
function group_limits.let_rest(root, queue, group, ms, now)
    local score = read_mark(root, queue, group)
    if score < 0 and score > LOOKED or not group_limits.list_held(root, queue, group, 1)[1] then return 1 end
    ms = ms or compute_rest(root, queue)
    call('ZADD', keys.releases(root, queue), now + ms, group)
    return ms
end

-- Has the next takes look at all groups with held jobs, in several steps where they are many; after such a look that is under
-- way.
local function mark_all(root, queue)
    if call('EXISTS', keys.members(root, queue)) == 1 then call('ZADD', keys.releases(root, queue), NEXT, '\0') end
end

-- Tells whether so many groups are marked that all are looked at instead; also where that is under way, so that none overtakes.
-- Groups that wait for their rate have a time in place of a mark.
local function are_many_marked(root, queue)
    local key = keys.releases(root, queue)
    local marked = call('ZCOUNT', key, '-inf', 0)
    return marked >= MAX_MARKED or marked >= FEW_MARKED and string.byte(call('ZRANGE', key, 0, 0)[1]) == 0
end

-- Holds a job of a limited group, and answers its score among the ready ones; nil when the group has no limits. `has_run`: it
-- comes back for a further attempt, before the other jobs of its group and priority.
function group_limits.hold(root, queue, job, spec, priority, has_run)
    local rules = group_limits.read(root, queue, spec.group)
    if not rules then return nil end
    local order = (9 - priority) * BAND + (has_run and 0 or tonumber(string.match(job, '(%d+)$')))
    call('ZADD', keys.members(root, queue), 0, make_held(spec.group, order, job))
    if rules.home and read_mark(root, queue, spec.group) > LOOKED then return HELD + order end
    if are_many_marked(root, queue) then mark_all(root, queue) else group_limits.mark(root, queue, spec.group) end
    return HELD + order
end

-- Removes a job that is no longer ready or leased; tells whether held jobs of its group may now be taken.
function group_limits.leave(root, queue, job, group, score)
    local words = { make_member(group, 'l', job), make_member(group, 'r', job) }
    if score and score >= HELD then words[3] = make_held(group, score - HELD, job) end
    local gone = redis.pcall('ZREM', keys.members(root, queue), unpack(words))
    return type(gone) == 'number' and gone > 0 and group_limits.mark(root, queue, group)
end

-- Removes a leased job that this partition admitted and that did not run: it does not count against the rate.
function group_limits.undo(root, queue, job, group, now)
    local rules = group_limits.read(root, queue, group)
    group_limits.leave(root, queue, job, group)
    if rules and not rules.home then group_limits.count_arrival(root, queue, group, rules, -1, now) end
end

-- Answers what `leave` changes for a ready job, so that `restore` can undo it.
function group_limits.save(root, queue, job, group, score)
    local member = score >= HELD and make_held(group, score - HELD, job) or make_member(group, 'r', job)
    return { member = call('ZSCORE', keys.members(root, queue), member) and member,
        release = call('ZSCORE', keys.releases(root, queue), group) }
end

function group_limits.restore(root, queue, group, saved)
    if saved.member then call('ZADD', keys.members(root, queue), 0, saved.member) end
    if saved.release then return call('ZADD', keys.releases(root, queue), saved.release, group) end
    call('ZREM', keys.releases(root, queue), group)
end

-- Counts leased jobs against the rate of their group; below 0, as many that did not run.
function group_limits.count_arrival(root, queue, group, rules, number, now)
    if group == '' then return queue_limits.count_taken(rules, root, queue, number, now) end
    if not rules.interval then return end
    call('ZADD', keys.arrivals(root, queue), queue_limits.compute_arrival(rules, now) + number * rules.interval, group)
end

-- Tells whether a job that was popped may be leased now, and counts it if so. `groups`: the default limits as text. `asks`: the
-- caller has jobs admitted. The second result: the home of its group, if that has to admit it.
function group_limits.admit(root, queue, job, group, groups, now, asks)
    local key, rules = keys.members(root, queue), group_limits.read(root, queue, group, groups)
    local was_ready = call('ZREM', key, make_member(group, 'r', job)) == 1
    if not rules then return true end
    if not was_ready and group_limits.list_held(root, queue, group, 1)[1] then return false end
    if rules.home and asks then return not rules.paused, rules.home end
    local home = rules.home
    if home then queue_limits.take_share(root, rules) end
    local leased = rules.concurrency and count(root, queue, group, 'l') or 0
    if queue_limits.compute_allowance(rules, leased, 1, now) == 0 then return false, home end
    call('ZADD', key, 0, make_member(group, 'l', job))
    group_limits.count_arrival(root, queue, group, rules, 1, now)
    return true
end

-- Answers how many held jobs of a group may become ready, at most `most`; where fewer, also why, as
-- queue_limits.compute_allowance does; how many are ready; and how many places that the home offered are left.
function group_limits.count_room(root, queue, group, most, now)
    local rules, ready = group_limits.read(root, queue, group), count(root, queue, group, 'r')
    if not rules then return most, nil, ready end
    if rules.home then
        if rules.paused then return 0, 'paused', ready end
        local score = read_mark(root, queue, group)
        if score < LOOKED then return most, nil, ready end
        if score >= 0 then return 1, nil, ready end
        return math.min(most, -score), compute_rest(root, queue), ready, math.max(0, -score - most)
    end
    local leased = rules.concurrency and count(root, queue, group, 'l') or 0
    local room, why = queue_limits.compute_allowance(rules, leased, ready + most, now)
    return math.max(0, room - ready), why, ready
end

-- Moves a held job to the ready ones of its group.
function group_limits.make_ready(root, queue, member)
    local group, _, job = group_limits.parse_member(member)
    call('ZREM', keys.members(root, queue), member)
    call('ZADD', keys.members(root, queue), 0, make_member(group, 'r', job))
end

-- Tells whether a member names a job that is where the member says. `row`: its queue, place and group, and `score` among the
-- ready ones.
function group_limits.is_member(member, row)
    local group, letter, _, score = group_limits.parse_member(member)
    if row.group ~= group then return false end
    if letter == 'l' then return row.place == 'leased' end
    return row.place == 'ready' and (letter == 'h') == (row.score >= HELD) and (not score or score == row.score)
end

-- Removes such a member.
function group_limits.remove_member(root, queue, member)
    call('ZREM', keys.members(root, queue), member)
    local group = group_limits.parse_member(member)
    if group then group_limits.mark(root, queue, group) end
end

-- Adds the member of a job that is held or leased, if it is missing; tells whether it was.
function group_limits.add_member(root, queue, job, row)
    if (row.group or '') == '' then return false end
    local rules = row.place == 'leased' and group_limits.read(root, queue, row.group)
    local is_leased = rules and not rules.home
    local member = is_leased and make_member(row.group, 'l', job)
        or row.place == 'ready' and row.score >= HELD and make_held(row.group, row.score - HELD, job)
    if not member or call('ZADD', keys.members(root, queue), 0, member) == 0 then return false end
    group_limits.mark(root, queue, row.group)
    return true
end

-- Counts the jobs that are leased while limits are set, of one group or of all.
local function recount_leased(root, queue, only)
    for _, job in ipairs(call('ZRANGE', keys.leased(root, queue), 0, MAX_LEASED - 1)) do
        local group = redis.pcall('HGET', keys.job(root, job), 'group')
        local rules = type(group) == 'string' and (not only or group == only) and group_limits.read(root, queue, group)
        if rules and not rules.home then
            call('ZADD', keys.members(root, queue), 0, make_member(group, 'l', job))
        end
    end
end

-- Goes on with that: `marker` names the group before. Answers the next marker; nil at the end.
function group_limits.mark_further(root, queue, marker, most)
    local group, key = string.sub(marker, 2), keys.members(root, queue)
    for _ = 1, most do
        local first = call('ZRANGEBYLEX', key, '(' .. group .. '\1', '+', 'LIMIT', 0, 1)[1]
        if not first then return call('ZREM', keys.releases(root, queue), marker) and nil end
        group = group_limits.parse_member(first)
        group_limits.mark(root, queue, group)
    end
    call('ZREM', keys.releases(root, queue), marker)
    call('ZADD', keys.releases(root, queue), NEXT, '\0' .. group)
    return nil
end

local function is_used(root, queue)
    return call('EXISTS', keys.limits(root, queue)) == 1
        or call('ZRANGEBYLEX', keys.members(root, queue), '(\1', '+', 'LIMIT', 0, 1)[1] ~= nil
end

-- Forgets that groups had limits, the clocks of their rates and which a take looks at.
local function forget(root, queue)
    call('HDEL', keys.rules(root, queue), 'groups')
    call('DEL', keys.arrivals(root, queue), keys.releases(root, queue))
end

-- Stores what the definition declares for each group, {concurrency, rate = count, per = ms, burst}; nothing for no limits.
function group_limits.declare(root, queue, declared)
    local key, text = keys.rules(root, queue), nil
    local before = call('HGET', key, 'groups') or nil
    if next(declared) or is_used(root, queue) then
        text = json.encode({ concurrency = declared.concurrency, rate = queue_limits.format_rate(declared),
            homes = queue_limits.count_homes(root), asked = decode(before).asked })
    end
    if text == before then return end
    if not text then return forget(root, queue) end
    call('HSET', key, 'groups', text)
    recount_leased(root, queue)
    mark_all(root, queue)
end

-- Notes that jobs of another partition were to be admitted: from now on those of this one are admitted in the same way. Groups
-- without room waited for the end of a job that this partition admitted: they are looked at. Tells whether this is new.
function group_limits.note_asked(root, queue)
    local key = keys.rules(root, queue)
    local declared = decode(call('HGET', key, 'groups') or nil)
    if declared.asked then return false end
    declared.asked = true
    call('HSET', key, 'groups', json.encode(declared))
    group_limits.mark_further(root, queue, '\0', FEW_MARKED)
    return true
end

-- Changes the own limits of a group: `fields` holds what changes, '' in place of what goes. Answers nil, or why not.
function group_limits.set(root, queue, group, fields)
    local key = keys.limits(root, queue)
    local own = decode(call('HGET', key, group) or nil)
    if not next(own) and call('HLEN', key) >= MAX_OWN then
        return 'at most ' .. MAX_OWN .. ' groups of a queue have limits of their own; declare limits for all groups'
    end
    for name, value in pairs(fields) do own[name] = value ~= '' and value or nil end
    if next(own) then call('HSET', key, group, json.encode(own)) else call('HDEL', key, group) end
    call('HSETNX', keys.rules(root, queue), 'groups', json.encode({ homes = queue_limits.count_homes(root) }))
    if fields.rate then call('ZREM', keys.arrivals(root, queue), group) end
    recount_leased(root, queue, group)
    group_limits.mark(root, queue, group)
    return nil
end

-- Forgets what no group needs: clocks of rates that are past, and, where nothing has limits any more, that groups had some.
function group_limits.tidy(root, queue, groups, now)
    redis.pcall('ZREMRANGEBYSCORE', keys.arrivals(root, queue), '-inf', now - 1000)
    local declared = decode(groups)
    if declared.concurrency or declared.rate or is_used(root, queue) then return end
    forget(root, queue)
end

return group_limits
