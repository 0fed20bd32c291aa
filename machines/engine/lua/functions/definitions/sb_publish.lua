-- needs: arguments, data_indexes, keys, partition_log, programs, pulse, replies, rollouts, values, version_counters
-- needs: version_policy
-- sb_publish: stores a compiled definition as a numbered, immutable version and makes it the current one, or rolls it out.
-- KEYS:    1 root of the partition
-- ARGV:    1 digest of the program (hex) · 2 program (JSON) · 3 source definition (JSON) · 4 secret (hex) · 5 partitions · 6
--          version ('' = the next one; the number of an earlier publication for another partition or a restore) · 7 '' to
--          make it current; store to leave the current version as it is; rollout · 8 for rollout, the share in hundredths of a
--          percent (0 to 9999) · 9 settings (JSON {guard, marks}, or '') · 10 actor · 11 reason ·
--          12 the newest version when the program was compared with all, or ''
-- Returns: {OK, version, '1' new or '0' published before} · {CONFLICT, version} the number has another content ·
--          {VERSIONS, code, why} a pin or a withdrawal does not allow it · {STALE, version} this one is newer: compare
--          again · {BADARG, why}
--          The same content as the current version, the one that is rolled out or the one that waits behind a pin changes
--          nothing. A version that becomes current ends the roll-out
-- Notifies: <root>:pulse
-- Cost:    O(size of the program)
local MAX_VERSION, MAX_PARTITIONS = 1e9, 65536

-- Checked before any write: each of these becomes part of a key or a field.
local function check_row(row, version, root)
    arguments.refuse(arguments.check_root(root))
    arguments.need(string.find(row.digest or '', '^%x+$') and #row.digest <= 64, 'a digest is hex')
    arguments.need(row.program and row.source and row.secret, 'program, source and secret are needed')
    arguments.need(arguments.parse_count(row.partitions, 1, MAX_PARTITIONS), 'partitions are 1 to ' .. MAX_PARTITIONS)
    arguments.need(version == '' or arguments.parse_count(version, 1, MAX_VERSION), 'a version is a whole number from 1')
end

local function check_program(source, root)
    local ok, caught = pcall(programs.check_work, source, root)
    if ok then return nil end
    -- A definition that passed the checks always compiles, so another program wrote this one.
    local why = type(caught) == 'table' and values.describe_error(caught) or string.match(tostring(caught), 'definition: (.*)$')
    return 'the program is not what a definition compiles to' .. (why and ': ' .. why or '')
end

local function store(root, def, version, row)
    redis.call('HSET', keys.definition(root, version), 'program', row.program, 'source', row.source,
        'digest', row.digest, 'secret', row.secret)
    redis.call('HSETNX', keys.meta(root), 'homes', redis.call('HGET', keys.meta(root), 'partitions') or row.partitions)
    redis.call('HSET', keys.meta(root), 'def:' .. version, def, 'partitions', row.partitions)
    if row.is_current then redis.call('HSET', keys.meta(root), 'current', def) end
    local newest = tonumber(redis.call('HGET', keys.meta(root), 'newest') or 0)
    if version > newest then redis.call('HSET', keys.meta(root), 'newest', version) end
end

-- Throws before any write when a key has another type.
local function check_keys(root, version, source)
    redis.call('HLEN', keys.definition(root, version))
    redis.call('SCARD', keys.states(root))
    redis.call('SCARD', keys.queues(root))
    for _, queue in ipairs(source.queues or {}) do redis.call('HLEN', keys.rules(root, queue)) end
    for _, field in ipairs(source.index or {}) do redis.call('ZCARD', keys.lookup(root, field)) end
end

local function store_names(root, source)
    for _, state in ipairs(source.states) do
        if not state.kind then redis.call('SADD', keys.states(root), state.name) end
    end
    for _, queue in ipairs(source.queues or {}) do redis.call('SADD', keys.queues(root), queue) end
end

-- A field that any version has declared stays indexed, for the instances of all versions.
local function store_indexes(root, source)
    local listed, empty = data_indexes.read_list(root), (tonumber(redis.call('HGET', keys.meta(root), 'instances')) or 0) == 0
    local extended = data_indexes.extend_list(listed, source.index or {}, empty)
    if extended ~= listed then redis.call('HSET', keys.meta(root), 'by', extended) end
    programs.drop_outdated(root)
end

-- A field that any version has marked as sensitive is sensitive in the instances of all versions.
local function store_sensitive(root, marked)
    if not marked then return end
    local held = cjson.decode(redis.call('HGET', keys.meta(root), 'sensitive') or '{"data":{},"events":{}}')
    for field in pairs(marked.data or {}) do held.data[field] = 1 end
    for event, fields in pairs(marked.events or {}) do
        held.events[event] = held.events[event] or {}
        for field in pairs(fields) do held.events[event][field] = 1 end
    end
    for field, mark in pairs(marked.encrypted or {}) do
        held.encrypted = held.encrypted or {}
        held.encrypted[field] = mark
    end
    redis.call('HSET', keys.meta(root), 'sensitive', cjson.encode(held))
end

-- Parses how a new version begins: '' (current), 'store' (not current) or a roll-out with its share and settings.
local function parse_mode(ARGV)
    local mode = ARGV[7] or ''
    if mode == '' or mode == 'store' then return { mode = mode } end
    arguments.need(mode == 'rollout', "a version is published with '', store or rollout")
    arguments.refuse(arguments.check('', '', ARGV[10] or '', ARGV[11] or '', ''))
    return { mode = mode, share = version_policy.parse_share(ARGV[8]), settings = version_policy.parse_settings(ARGV[9]),
        actor = ARGV[10] or '', reason = ARGV[11] or '', now = arguments.read_now('') }
end

local function has_digest(def, digest)
    return def and string.match(def, ':(%x+)$') == digest
end

-- Finds the version that has this content already and that publishing it again leaves as it is; or the reply of a refusal.
local function find_same(policy, digest)
    local rollout, pin = policy.rollout, policy.pin
    for _, def in ipairs({ policy.current or '', rollout and rollout.def or '', pin and pin.next or '' }) do
        if has_digest(def, digest) then return { replies.OK, string.match(def, '^%d+'), '0' } end
    end
    for def in pairs(policy.withdrawn) do
        if has_digest(def, digest) then
            local why = 'this content was withdrawn as version ' .. string.match(def, '^%d+')
            return version_policy.refuse('SB629', why)
        end
    end
    return nil
end

-- Starts the roll-out of a version that is about to be stored; nil, or the reply of a refusal.
local function start_rollout(root, policy, def, row, mode)
    local refusal = rollouts.start(policy, def, mode.share, mode.settings, mode)
    if refusal then return refusal end
    redis.call('XLEN', keys.log(root)) -- throws before any write when the key has another type
    row.becomes = function()
        version_policy.write(root, policy)
        partition_log.append(root, 'kind', 'version', 'name', 'start', 'data', cjson.encode({
            version = tonumber(string.match(def, '^%d+')), percent = mode.share / 100, actor = mode.actor, reason = mode.reason,
        }), 'actor', mode.actor, 'reason', mode.reason)
    end
end

-- Decides what a version is after it was stored: `row.becomes` writes that. nil, or the reply of a refusal.
local function decide(root, policy, def, row, mode)
    if mode.mode ~= 'store' and policy.withdrawn[def] then
        return version_policy.refuse('SB625', 'version ' .. string.match(def, '^%d+') .. ' is withdrawn: no new instance gets it')
    elseif not policy.current then
        row.is_current = true
    elseif mode.mode == 'rollout' and policy.current ~= def then
        return start_rollout(root, policy, def, row, mode)
    elseif mode.mode == '' and policy.pin and policy.current ~= def then
        policy.pin.next = def
        row.becomes = function() version_policy.write(root, policy) end
    elseif mode.mode == '' and policy.current ~= def then
        row.is_current = true
        row.becomes = function()
            policy.rollout = nil
            version_policy.write(root, policy)
        end
    elseif mode.mode == '' then
        row.is_current = true
    end
    return nil
end

local function list_queues(root)
    local known = {}
    for _, queue in ipairs(redis.call('SMEMBERS', keys.queues(root))) do known[queue] = true end
    return known
end

-- The limits of a version that is not current hold for the queues that no version before it had.
local function store_limits(root, source, row, known)
    local only
    if not row.is_current then
        only = {}
        for _, queue in ipairs(source.queues or {}) do only[queue] = not known[queue] or nil end
    end
    version_policy.store_limits(root, source, only)
end

local function store_new(root, def, version, row, source, is_known)
    local known = list_queues(root)
    check_keys(root, version, source)
    version_counters.begin(root)
    store(root, def, version, row)
    store_names(root, source)
    store_indexes(root, source)
    store_sensitive(root, source.sensitive)
    if not is_known then redis.call('HSET', keys.meta(root), 'granted', '') end -- else 0.1.0 accepts every sender
    store_limits(root, source, row, known)
end

return function(KEYS, ARGV)
    local root = KEYS[1]
    local row = { digest = ARGV[1], program = ARGV[2], source = ARGV[3], secret = ARGV[4], partitions = ARGV[5] }
    check_row(row, ARGV[6] or '', root)
    local mode = parse_mode(ARGV)
    row.wanted = tonumber(ARGV[6] or '')
    local policy = version_policy.read(root)
    local same = not row.wanted and find_same(policy, row.digest)
    if same then return same end
    local newest = redis.call('HGET', keys.meta(root), 'newest') or '0'
    if (ARGV[12] or '') ~= '' and ARGV[12] ~= newest then return { replies.STALE, newest } end
    local version = row.wanted or tonumber(newest) + 1
    local def = version .. ':' .. row.digest
    local there = redis.call('HGET', keys.meta(root), 'def:' .. version)
    if there and there ~= def then return { replies.CONFLICT, tostring(version) } end
    local ok, source = pcall(cjson.decode, row.program)
    arguments.refuse(not ok and 'the program is not JSON' or check_program(source, root))
    local is_known = policy.current ~= nil
    local refusal = decide(root, policy, def, row, mode)
    if refusal then return refusal end
    if there then
        if row.is_current then
            redis.call('HSET', keys.meta(root), 'current', def)
            version_policy.store_limits(root, source)
        end
        if row.becomes then row.becomes() end
        return { replies.OK, tostring(version), '0' }
    end
    store_new(root, def, version, row, source, is_known)
    if row.becomes then row.becomes() end
    pulse.ring(root)
    return { replies.OK, tostring(version), '1' }
end
