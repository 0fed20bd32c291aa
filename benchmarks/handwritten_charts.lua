#!lua name=signalbox_bench_charts
-- The peers of a chart's step: the transitions of the machines of charts.py, each written by hand for that one machine, as
-- tight as it gets, with the same writes (indexes of the leaves, packed history entry, flow counters, instance, pulse) and
-- the same answer: the instance as it now is.

local KEEP, SLACK = 100, 16
local PULSE_MS = 50
local rung = 0

local function clock()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function pulse(root, now)
    if now - rung < PULSE_MS and now >= rung then return end
    rung = now
    redis.call('SET', root .. ':pulse', 1, 'NX', 'PX', PULSE_MS)
end

local function read(key)
    local flat, row = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
    return row
end

local function move(root, id, from, to, now)
    redis.call('ZADD', root .. ':in:' .. to, now, id)
    redis.call('ZREM', root .. ':in:' .. from, id)
end

local function remember(root, id, entry)
    local key = root .. ':h:' .. id
    if redis.call('RPUSH', key, entry) > KEEP + SLACK then redis.call('LTRIM', key, -KEEP, -1) end
end

-- All: KEYS: 1 root · ARGV: 1 id, 2 event · return {transitions, JSON of the instance}

local function compound(KEYS, ARGV)
    local root, id, now = KEYS[1], ARGV[1], clock()
    local key = root .. ':i:' .. id
    local row = read(key)
    local version, n, from = row._version + 1, row.n + 1, row._state
    local to, edge = 'r', 't1'
    if from == 'r' then to, edge = 'l', 't2' end
    move(root, id, from, to, now)
    remember(root, id, '1:' .. edge .. '\t' .. version .. '\t' .. now - row._created .. '\t1=' .. n)
    redis.call('HINCRBY', root .. ':flow', '1:' .. edge, 1)
    redis.call('HSET', key, '_version', version, '_state', to, '_entered', now, 'n', n)
    pulse(root, now)
    row._version, row._state, row._entered, row.n = version, to, now, n
    return { edge, cjson.encode(row) }
end

local REGIONS = { g1 = 1, g2 = 2, g3 = 3 }
local PLACES = { { a = 4, b = 5 }, { a = 7, b = 8 }, { a = 10, b = 11 } }

local function one(KEYS, ARGV)
    local root, id, region, now = KEYS[1], ARGV[1], REGIONS[ARGV[2]], clock()
    local key, field = root .. ':i:' .. id, 'n' .. region
    local row = read(key)
    local version, n, at = row._version + 1, row[field] + 1, region * 3
    local sides = { string.sub(row._state, 1, 1), string.sub(row._state, 4, 4), string.sub(row._state, 7, 7) }
    local from = sides[region]
    local to, edge = 'b', 't' .. region * 2 + 1
    if from == 'b' then to, edge = 'a', 't' .. region * 2 + 2 end
    sides[region] = to
    local state = string.sub(row._state, 1, at - 3) .. to .. string.sub(row._state, at - 1)
    move(root, id, from .. region, to .. region, now)
    remember(root, id, '1:' .. edge .. '\t' .. version .. '\t' .. now - row._created .. '\t>' .. PLACES[1][sides[1]] .. ' '
        .. PLACES[2][sides[2]] .. ' ' .. PLACES[3][sides[3]] .. '\t' .. region .. '=' .. n)
    redis.call('HINCRBY', root .. ':flow', '1:' .. edge, 1)
    redis.call('HSET', key, '_version', version, '_state', state, '_entered', now, field, n)
    pulse(root, now)
    row._version, row._state, row._entered, row[field] = version, state, now, n
    return { edge, cjson.encode(row) }
end

local function all(KEYS, ARGV)
    local root, id, now = KEYS[1], ARGV[1], clock()
    local key = root .. ':i:' .. id
    local row = read(key)
    local version, n1, n2, n3 = row._version + 1, row.n1 + 1, row.n2 + 1, row.n3 + 1
    local from, to, first, state, edges, places = 'a', 'b', 3, 'b1\nb2\nb3', 't3 t5 t7', '5 8 11'
    if row._state == state then from, to, first, state, edges, places = 'b', 'a', 4, 'a1\na2\na3', 't4 t6 t8', '4 7 10' end
    move(root, id, from .. 1, to .. 1, now)
    move(root, id, from .. 2, to .. 2, now)
    move(root, id, from .. 3, to .. 3, now)
    remember(root, id, '1:' .. edges .. '\t' .. version .. '\t' .. now - row._created .. '\t>' .. places .. '\t1=' .. n1
        .. '\t2=' .. n2 .. '\t3=' .. n3)
    for edge = first, first + 4, 2 do redis.call('HINCRBY', root .. ':flow', '1:t' .. edge, 1) end
    redis.call('HSET', key, '_version', version, '_state', state, '_entered', now, 'n1', n1, 'n2', n2, 'n3', n3)
    pulse(root, now)
    row._version, row._state, row._entered, row.n1, row.n2, row.n3 = version, state, now, n1, n2, n3
    return { edges, cjson.encode(row) }
end

local function history(KEYS, ARGV)
    local root, id, now = KEYS[1], ARGV[1], clock()
    local key = root .. ':i:' .. id
    local row = read(key)
    local version, age = row._version + 1, now - row._created
    if ARGV[2] == 'leave' then
        local last = row._state
        redis.call('ZADD', root .. ':in:Outside', now, id)
        remember(root, id, '1:t2\t' .. version .. '\t' .. age)
        redis.call('HINCRBY', root .. ':flow', '1:t2', 1)
        redis.call('HSET', key, '_version', version, '_state', 'Outside', '_entered', now, '_h:last', last)
        for leaf in string.gmatch(last, '%S+') do redis.call('ZREM', root .. ':in:' .. leaf, id) end
        pulse(root, now)
        row._version, row._state, row._entered, row['_h:last'] = version, 'Outside', now, last
        return { 't2', cjson.encode(row) }
    end
    local state, places = row['_h:last'], ''
    for side, number in string.gmatch(state, '(%a)(%d)') do
        redis.call('ZADD', root .. ':in:' .. side .. number, now, id)
        places = places .. ' ' .. PLACES[tonumber(number)][side]
    end
    remember(root, id, '1:t9\t' .. version .. '\t' .. age .. '\t>' .. string.sub(places, 2))
    redis.call('HINCRBY', root .. ':flow', '1:t9', 1)
    redis.call('HSET', key, '_version', version, '_state', state, '_entered', now)
    redis.call('ZREM', root .. ':in:Outside', id)
    pulse(root, now)
    row._version, row._state, row._entered = version, state, now
    return { 't9', cjson.encode(row) }
end

redis.register_function('bench_compound', compound)
redis.register_function('bench_one', one)
redis.register_function('bench_all', all)
redis.register_function('bench_history', history)
