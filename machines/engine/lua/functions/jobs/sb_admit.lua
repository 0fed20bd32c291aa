-- needs: arguments, group_admissions, group_limits, held_jobs, jobs, pulse, queue_limits, replies
-- sb_admit: has the limits of a queue and of its groups hold for the jobs of all partitions: admits leased jobs at the home
-- of each, keeps them while their leases are renewed, and frees their places when they have ended; gives those back that were
-- not admitted, and calls for those that may now be.
-- KEYS:    1 root of the partition
-- ARGV:    1 admit, keep, free or undo (at the home), back, offer or list (where the jobs are) · 2 queue · 3 now (ms, or '')
--          · then for each, at most 1000: with admit, group ('' for the queue), job, token and 'more' where its partition
--          has further jobs of it, or ''; with keep, free and undo (of jobs that did not run), group, job, token; with
--          back, job, token, group and what admit answered; with offer, group and the number of places
-- Returns: for admit {OK, word, ..., group, job, token, ...}: of each job 'held', 'free' where it need not be freed, 'busy' or
--          the ms after which to ask again; then admissions to free if the token no longer holds the job · for free and undo
--          {OK, partition, group, places, ...}: the offers to make · for back {OK, ms after which to ask again} · for keep {OK}
--          · for offer {OK, group, places, ...}: those in vain, to free again for a job 0 · for list {OK, home, group, job,
--          token, ...}: leased jobs that homes count · {BADARG, why}
-- Notifies: <root>:pulse with back
-- Cost:    O(jobs * log(queue))
local WORDS, MOST = { admit = 4, keep = 3, free = 3, undo = 3, back = 4, offer = 2, list = 1 }, 1000

local modes = {}

-- Has all jobs of groups admitted by their homes from now on if one of the words, `step` apart, is a group.
local function note_asked(root, queue, words, step)
    for i = 1, #words, step do
        if words[i] ~= '' then
            if group_limits.note_asked(root, queue) then group_admissions.list_leased(root, queue) end
            return
        end
    end
end

function modes.admit(root, queue, words, now)
    local reply, is_busy = { replies.OK }, false
    note_asked(root, queue, words, 4)
    for i = 1, #words, 4 do
        local word = group_admissions.admit(root, queue, words[i], words[i + 1], words[i + 2], words[i + 3] == 'more', now)
        reply[#reply + 1] = tostring(word)
        is_busy = is_busy or word == 'busy'
    end
    for _, word in ipairs(group_admissions.list_unchecked(root, queue, is_busy, now)) do reply[#reply + 1] = word end
    return reply
end

function modes.keep(root, queue, words, now)
    note_asked(root, queue, words, 3)
    for i = 1, #words, 3 do group_admissions.keep(root, queue, words[i], words[i + 1], words[i + 2], now) end
    return { replies.OK }
end

function modes.free(root, queue, words, now)
    local reply = group_admissions.free(root, queue, words, now)
    table.insert(reply, 1, replies.OK)
    return reply
end

function modes.undo(root, queue, words, now)
    local reply = group_admissions.free(root, queue, words, now, true)
    table.insert(reply, 1, replies.OK)
    return reply
end

function modes.list(root, queue)
    local reply = group_admissions.list_leased(root, queue)
    table.insert(reply, 1, replies.OK)
    return reply
end

function modes.back(root, queue, words, now)
    local first = math.huge
    for i = 1, #words, 4 do
        local wait = held_jobs.take_back(root, queue, words[i], words[i + 1], words[i + 2], tonumber(words[i + 3]), now)
        first = math.min(first, wait or first)
    end
    pulse.ring(root)
    return { replies.OK, first < math.huge and first or 0 }
end

local function offer(root, queue, group, places, now)
    if group ~= '' then return group_limits.offer(root, queue, group, places) end
    if not held_jobs.has_takable(root, queue, now) then return false end
    queue_limits.offer(root, queue, places)
    return true
end

function modes.offer(root, queue, words, now)
    local reply, is_heard = { replies.OK }, false
    for i = 1, #words, 2 do
        if offer(root, queue, words[i], tonumber(words[i + 1]), now) then
            is_heard = true
        else
            reply[#reply + 1], reply[#reply + 2] = words[i], words[i + 1]
        end
    end
    if is_heard then jobs.ring_bell(root, queue) end
    return reply
end

-- Answers why the words behind the time do not fit, or nil.
local function check_words(mode, words)
    if #words % WORDS[mode] ~= 0 or #words == 0 or #words / WORDS[mode] > MOST then
        return 'each comes in ' .. WORDS[mode] .. ' words, 1 to ' .. MOST .. ' of them'
    end
    for i = 1, #words, WORDS[mode] do
        local job = (WORDS[mode] == 3 or mode == 'admit') and words[i + 1]
        if job and not string.find(job, '^%d+%-%d+$') then return 'a job has an id like 0-1' end
        if mode == 'offer' and not arguments.parse_count(words[i + 1], 1, MOST) then return 'places are 1 to ' .. MOST end
    end
    return nil
end

return function(KEYS, ARGV)
    local root, mode, queue = KEYS[1], ARGV[1], ARGV[2]
    arguments.need(WORDS[mode or ''], 'admit, keep, free, undo, back, offer or list')
    arguments.refuse(arguments.check_queue(queue))
    local now, words = arguments.need_now(ARGV[3]), { unpack(ARGV, 4) }
    arguments.refuse(mode ~= 'list' and check_words(mode, words))
    return modes[mode](root, queue, words, now)
end
