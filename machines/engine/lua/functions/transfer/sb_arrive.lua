-- needs: arguments, keys, pulse, queue_counters, record_checks, record_writes, redirects, replies, values
-- sb_arrive: brings staged instances into force in their new partition, after they have departed from the old one; or drops
-- staged records of instances that have not.
-- KEYS:    1 root of the new partition
-- ARGV:    1 number of the run, as sb_grow has it; '' for a caller that the old partition has sent here · 2 now (ms, or '') ·
--          3 arrive | drop · 4 id, then further ones (at most 200)
-- Returns: {OK, outcome, why, outcome, why, ...}; an outcome is arrived, dropped, gone (nothing is staged), there (an instance
--          with this id is here) or refused · {CONFLICT, run} a later run has begun · {BADARG, why}
-- Notifies: <root>:pulse
-- Cost:    O(size of the instances)
local MAX_IDS = 200

local function arrive(root, id, now, action)
    local text = redis.call('HGET', keys.staged(root), id)
    if not text then return 'gone', '' end
    local outcome = action == 'drop' and 'dropped' or 'arrived'
    if outcome == 'arrived' then
        if redis.call('EXISTS', keys.instance(root, id)) == 1 then
            outcome = 'there'
        else
            local found = record_checks.check_instance(root, cjson.decode(text))
            record_writes.write_instance(root, found, now)
            for _, job in ipairs(found.jobs) do queue_counters.increment(root, job.row.queue, 'arrived') end
        end
    end
    redis.call('HDEL', keys.staged(root), id)
    return outcome, ''
end

return function(KEYS, ARGV)
    local root, growth, action = KEYS[1], redirects.read_growth(KEYS[1]), ARGV[3]
    arguments.need(growth, 'the machine does not grow')
    if ARGV[1] ~= '' and tostring(growth.run) ~= ARGV[1] then return { replies.CONFLICT, tostring(growth.run) } end
    local is_action = action == 'arrive' or action == 'drop' and ARGV[1] ~= ''
    arguments.need(is_action, 'an instance arrives, or its record is dropped')
    arguments.need(ARGV[4] and #ARGV <= MAX_IDS + 3, 'give 1 to ' .. MAX_IDS .. ' ids')
    local reply, now = { replies.OK }, arguments.need_now(ARGV[2])
    for i = 4, #ARGV do
        local ok, outcome, why = pcall(arrive, root, ARGV[i], now, action)
        if not ok then outcome, why = 'refused', values.describe_error(outcome) end
        reply[#reply + 1], reply[#reply + 2] = outcome, why
    end
    pulse.ring(root)
    return reply
end
