-- needs: arguments, keys, record_checks, redirects, replies, values
-- sb_stage: keeps the records of instances in the partition they move to, checked and not yet in force.
-- KEYS:    1 root of the partition
-- ARGV:    1 number of the run, as sb_grow has it · 2 id · 3 record as sb_export makes it · and so on, two for each (at
--          most 200)
-- Returns: {OK, outcome, why, outcome, why, ...}; an outcome is staged, there (an instance with this id is here) or refused
--          (the record does not fit the definition) · {CONFLICT, run} a later run has begun · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(size of the records)
local MAX_RECORDS = 200

local function stage(root, growth, id, text)
    if not redirects.is_home(root, growth, id) then return 'refused', 'this is not its partition' end
    if redis.call('EXISTS', keys.instance(root, id)) == 1 then return 'there', '' end
    local ok, record = pcall(cjson.decode, text)
    if not ok or type(record) ~= 'table' then return 'refused', 'a record is a JSON object' end
    if record.id ~= id then return 'refused', 'the record has another id' end
    record_checks.check_instance(root, record)
    redis.call('HSET', keys.staged(root), id, text)
    return 'staged', ''
end

return function(KEYS, ARGV)
    local root, growth = KEYS[1], arguments.need(redirects.read_growth(KEYS[1]), 'the machine does not grow')
    if tostring(growth.run) ~= ARGV[1] then return { replies.CONFLICT, tostring(growth.run) } end
    local is_whole = #ARGV % 2 == 1 and #ARGV <= 2 * MAX_RECORDS + 1
    arguments.need(is_whole, 'each id comes with its record, at most ' .. MAX_RECORDS .. ' of them')
    local reply = { replies.OK }
    for i = 2, #ARGV, 2 do
        local ok, outcome, why = pcall(stage, root, growth, ARGV[i], ARGV[i + 1])
        if not ok then outcome, why = 'refused', values.describe_error(outcome) end
        reply[#reply + 1], reply[#reply + 2] = outcome, why
    end
    return reply
end
