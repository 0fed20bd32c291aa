#!lua name=signalbox_bench
-- The peer of `fire`: the activation machine's `entitle`, written by hand for this one machine, as tight as it
-- gets, with the same writes (index, history entry of the same shape, flow counter, instance, pulse) and the same
-- answer: the instance as it now is.

local DAY = 86400
local KEEP, SLACK = 100, 16
local PULSE_MS = 50
local rung = 0

local function pulse(root)
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    if now - rung < PULSE_MS and now >= rung then return end
    rung = now
    redis.call('SET', root .. ':pulse', 1, 'NX', 'PX', PULSE_MS)
end

local function remember(root, id, version, now, state, edge, token, set)
    local key = root .. ':h:' .. id
    local entry = '[' .. version .. ',' .. now .. ',"entitle","' .. state .. '","' .. edge .. '",0,0,{"token":"' .. token
        .. '"},' .. set .. ']'
    if redis.call('RPUSH', key, entry) > KEEP + SLACK then redis.call('LTRIM', key, -KEEP, -1) end
end

local function move(root, id, from, to, now)
    redis.call('ZADD', root .. ':in:' .. to, now, id)
    redis.call('ZREM', root .. ':in:' .. from, id)
end

-- KEYS: 1 root · ARGV: 1 id, 2 token, 3 now (ms) · returns {transition, JSON of the instance}
local function entitle(KEYS, ARGV)
    local root, id, token, now = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
    local key, seconds = root .. ':i:' .. id, math.floor(now / 1000)
    local flat, row = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
    local state, version = row._state, row._version + 1
    local to, edge, set = state, nil, nil
    if state == 'Waiting' and row.token == token then
        to, edge = 'Active', 't2'
        local expires = seconds + 28 * DAY
        row.failed, row.expires = 0, expires
        set = '{"failed":0,"expires":' .. expires .. ',"last_logon_ts":' .. seconds .. '}'
        redis.call('HSET', key, '_version', version, '_state', to, '_entered', now, 'failed', 0, 'expires', expires,
            'last_logon_ts', seconds)
    elseif state == 'Waiting' and tonumber(row.failed) < 3 then
        edge = 't3'
        row.failed = row.failed + 1
        set = '{"failed":' .. row.failed .. ',"last_logon_ts":' .. seconds .. '}'
        redis.call('HSET', key, '_version', version, 'failed', row.failed, 'last_logon_ts', seconds)
    elseif state == 'Waiting' then
        to, edge, set = 'Suspended', 't4', '{"last_logon_ts":' .. seconds .. '}'
        redis.call('HSET', key, '_version', version, '_state', to, '_entered', now, 'last_logon_ts', seconds)
    elseif state == 'Active' and tonumber(row.expires) >= seconds then
        row.failed = 0
        edge, set = 't5', '{"failed":0,"last_logon_ts":' .. seconds .. '}'
        redis.call('HSET', key, '_version', version, 'failed', 0, 'last_logon_ts', seconds)
    elseif state == 'Active' then
        to, edge, set = 'Suspended', 't6', '{"failed":0,"last_logon_ts":' .. seconds .. '},["expires"]'
        redis.call('HSET', key, '_version', version, '_state', to, '_entered', now, 'failed', 0, 'last_logon_ts', seconds)
        redis.call('HDEL', key, 'expires')
        row.failed, row.expires = 0, nil
    elseif state == 'Suspended' then
        to, edge = 'Waiting', 't7'
        row.token, row.failed = token, 0
        set = '{"token":"' .. token .. '","failed":0,"last_logon_ts":' .. seconds .. '}'
        redis.call('HSET', key, '_version', version, '_state', to, '_entered', now, 'token', token, 'failed', 0,
            'last_logon_ts', seconds)
    else
        return redis.error_reply('REFUSED')
    end
    if to ~= state then move(root, id, state, to, now) end
    remember(root, id, version, now, to, edge, token, set)
    redis.call('HINCRBY', root .. ':flow', '1:' .. edge, 1)
    pulse(root)
    row._state, row._version, row.last_logon_ts = to, version, seconds
    if to ~= state then row._entered = now end
    return { edge, cjson.encode(row) }
end

redis.register_function('bench_entitle', entitle)
redis.register_function('bench_empty', function() return 1 end)
