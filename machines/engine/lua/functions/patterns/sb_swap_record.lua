-- needs: arguments, monotonic, pattern_keys, replies
-- sb_swap_record: writes or deletes a record if its generation is the expected one; a refusal has the actual record.
-- KEYS:    1 the collection's root
-- ARGV:    1 put | delete · 2 the record's key · 3 generation expected (0: no record; '': any) · 4 value (JSON text), put
--          only · 5 it expires after (ms, 1 to 366 days; '': never), put only · 6 now (ms, or '')
-- Returns: {OK, generation} (0 after a deletion) · {CONFLICT, generation, value} (0 and '' without a record) · {FULL} no
--          larger generation is left · {BADARG, why}
-- Notifies: nothing
-- Cost:    O(1)
local MAX_KEY, MAX_VALUE, MAX_TTL = 2048, 1048576, 366 * 86400000
local actions = {}

local function read_record(root, key)
    local found = redis.call('HMGET', pattern_keys.record_one(root, key), 'value', 'generation')
    if not found[1] and not found[2] then
        return redis.call('EXISTS', pattern_keys.record_one(root, key)) == 0 and { generation = 0, value = '' }
    end
    local generation = arguments.parse_count(found[2] or '', 1, monotonic.MOST)
    return found[1] and generation and { generation = generation, value = found[1] }
end

-- The collection keeps the last generation of deleted and expired records, so that none is ever used again.
local function next_generation(call, record)
    local last = redis.call('GET', pattern_keys.record_last(call.root))
    return monotonic.next(last, math.max(call.now, record.generation + 1), 'the last generation of ' .. call.root)
end

function actions.put(call, record)
    local keeps = record.generation == 0 or call.ttl
    local newest = keeps and next_generation(call, record) or monotonic.next(monotonic.format(record.generation), call.now)
    if not newest then return { replies.FULL } end
    local record_key, text = pattern_keys.record_one(call.root, call.key), monotonic.format(newest)
    if keeps then redis.call('SET', pattern_keys.record_last(call.root), text) end
    redis.call('HSET', record_key, 'value', call.value, 'generation', text)
    if call.ttl then
        redis.call('PEXPIRE', record_key, monotonic.format(call.ttl))
    else
        redis.call('PERSIST', record_key)
    end
    return { replies.OK, newest }
end

function actions.delete(call, record)
    if record.generation == 0 then return { replies.OK, 0 } end
    local newest = next_generation(call, record)
    if not newest then return { replies.FULL } end
    redis.call('SET', pattern_keys.record_last(call.root), monotonic.format(newest))
    redis.call('UNLINK', pattern_keys.record_one(call.root, call.key))
    return { replies.OK, 0 }
end

local function check_arguments(action, key, expect, value, ttl)
    arguments.need(actions[action or ''], 'the actions are put and delete')
    arguments.need((key or '') ~= '' and #key <= MAX_KEY, 'a key has 1 to ' .. MAX_KEY .. ' bytes')
    local is_generation = expect and (expect == '' or arguments.parse_count(expect, 0, monotonic.MOST))
    arguments.need(is_generation, 'expect is a generation, a whole number from 0 to 2^53 - 1, or nothing')
    if action == 'delete' then return end
    arguments.need((value or '') ~= '' and #value <= MAX_VALUE, 'a value is JSON text of at most ' .. MAX_VALUE .. ' bytes')
    arguments.need((ttl or '') == '' or arguments.parse_count(ttl, 1, MAX_TTL), 'a record expires after 1 ms to 366 days')
end

return function(KEYS, ARGV)
    local action, expect = ARGV[1], ARGV[3]
    check_arguments(action, ARGV[2], expect, ARGV[4], ARGV[5])
    local now = arguments.need_now(ARGV[6])
    local call = { root = KEYS[1], key = ARGV[2], value = ARGV[4], ttl = tonumber(ARGV[5] or ''), now = now }
    local record = read_record(call.root, call.key)
        or error('the record ' .. call.key .. ' is damaged: another program wrote its key', 0)
    if expect ~= '' and tonumber(expect) ~= record.generation then
        return { replies.CONFLICT, record.generation, record.value }
    end
    return actions[action](call, record)
end
