-- needs: arguments, group_admissions, group_limits, held_jobs, jobs, pulse, replies
-- sb_admit: has the limits of a group hold for the jobs of all partitions: admits leased jobs at the home of their group, keeps
-- them while their leases are renewed, and frees their places when they have ended; gives those back that were not admitted,
-- and calls for those that may now be.
-- KEYS:    1 root of the partition
-- ARGV:    1 admit, keep or free (at the home), back or offer (where the jobs are) · 2 queue · 3 now (ms, or '') · then for each,
--          at most 1000: with admit, group, job, token and 'more' where its partition holds further jobs of the group, or '';
--          with keep and free, group, job, token; with back, job, token and what admit answered; with offer, group and the
--          number of places
-- Returns: for admit {OK, word, ..., group, job, token, ...}: of each job 'held', 'free' where it need not be freed, 'busy' or
--          the ms after which to ask again; then admissions to free if the token no longer holds the job · for free {OK,
--          partition, group, places, ...}: the offers to make · for back {OK, ms after which to ask again} · for keep {OK}
--          · for offer {OK, group, places, ...}: those in vain, to free again for a job 0 · {BADARG, why}
-- Notifies: <root>:pulse with back
-- Cost:    O(jobs * log(queue))
local WORDS, MOST = { admit = 4, keep = 3, free = 3, back = 3, offer = 2 }, 1000

local modes = {}

function modes.admit(root, queue, words, now)
    local reply, is_busy = { replies.OK }, false
    group_limits.note_asked(root, queue)
    for i = 1, #words, 4 do
        local word = group_admissions.admit(root, queue, words[i], words[i + 1], words[i + 2], words[i + 3] == 'more', now)
        reply[#reply + 1] = tostring(word)
        is_busy = is_busy or word == 'busy'
    end
    for _, word in ipairs(group_admissions.list_unchecked(root, queue, is_busy, now)) do reply[#reply + 1] = word end
    return reply
end

function modes.keep(root, queue, words, now)
    for i = 1, #words, 3 do group_admissions.keep(root, queue, words[i], words[i + 1], words[i + 2], now) end
    return { replies.OK }
end

function modes.free(root, queue, words, now)
    local reply = group_admissions.free(root, queue, words, now)
    table.insert(reply, 1, replies.OK)
    return reply
end

function modes.back(root, queue, words, now)
    local first = math.huge
    for i = 1, #words, 3 do
        local wait = held_jobs.take_back(root, queue, words[i], words[i + 1], tonumber(words[i + 2]), now)
        first = math.min(first, wait or first)
    end
    pulse.ring(root)
    return { replies.OK, first < math.huge and first or 0 }
end

function modes.offer(root, queue, words)
    local reply, is_heard = { replies.OK }, false
    for i = 1, #words, 2 do
        if group_limits.offer(root, queue, words[i], tonumber(words[i + 1])) then
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
        local job = (mode == 'admit' or mode == 'keep' or mode == 'free') and words[i + 1]
        if job and not string.find(job, '^%d+%-%d+$') then return 'a job has an id like 0-1' end
        if mode == 'offer' and not arguments.parse_count(words[i + 1], 1, MOST) then return 'places are 1 to ' .. MOST end
    end
    return nil
end

return function(KEYS, ARGV)
    local root, mode, queue = KEYS[1], ARGV[1], ARGV[2]
    arguments.need(WORDS[mode or ''], 'admit, keep, free, back or offer')
    arguments.refuse(arguments.check_queue(queue))
    local now, words = arguments.need_now(ARGV[3]), { unpack(ARGV, 4) }
    arguments.refuse(check_words(mode, words))
    return modes[mode](root, queue, words, now)
end
