-- needs: arguments, departures, instance_records, instances, jobs, keys, redirects, replies
-- sb_depart: removes instances from their old partition, each if it is still as in its record. This is the moment in which an
-- instance moves: before it the old partition answers, after it the new one.
-- KEYS:    1 root of the old partition
-- ARGV:    1 number of the run, as sb_grow has it · 2 '1' to take along jobs that workers hold, '' to leave their instances ·
--          3 id · 4 SHA-1 of the record (hex) · and so on, two for each (at most 200)
-- Returns: {OK, outcome, ...}; an outcome is departed, gone (there is none), changed (make the record anew), leased (a worker
--          has one of its jobs) or messages (messages that it sent are not delivered yet) · {CONFLICT, run} a later run has
--          begun · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(size of the instances)
local MAX_IDS = 200

local function depart(root, growth, id, digest, with_leased, outbox)
    if redirects.is_home(root, growth, id) then return 'changed' end
    if not outbox then return 'messages' end
    local text, busy = instance_records.make(root, id, outbox, jobs.places)
    if not text then return 'gone' end
    if busy == 'messages' or outbox[id] then return 'messages' end
    if busy and not with_leased then return busy end
    if redis.sha1hex(text) ~= digest then return 'changed' end
    local ctx = instances.open(root, id, 0)
    if not ctx then return 'changed' end
    departures.remove(ctx, instance_records.list_held_jobs(root, id))
    return 'departed'
end

return function(KEYS, ARGV)
    local root, growth = KEYS[1], arguments.need(redirects.read_growth(KEYS[1]), 'the machine does not grow')
    if tostring(growth.run) ~= ARGV[1] then return { replies.CONFLICT, tostring(growth.run) } end
    local is_whole = ARGV[2] and #ARGV % 2 == 0 and #ARGV <= 2 * MAX_IDS + 2
    arguments.need(is_whole, 'each id comes with the SHA-1 of its record, at most ' .. MAX_IDS .. ' of them')
    local reply, outbox = { replies.OK }, instance_records.read_outbox(root)
    for i = 3, #ARGV, 2 do
        reply[#reply + 1] = depart(root, growth, ARGV[i], ARGV[i + 1], ARGV[2] == '1', outbox)
    end
    return reply
end
