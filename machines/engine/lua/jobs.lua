-- needs: json, keys
-- Jobs and their places. A job is in exactly one of ready, leased, delayed, dead of its queue, and its own hash
-- says which; every move goes through here.
local jobs = {}

local MAX_BELL = 8
local MAX_DEAD = 10000
local MAX_BACKOFF = 3600000

local places = { ready = keys.ready, leased = keys.leased, delayed = keys.delayed, dead = keys.dead }

-- Wakes an idle worker. A bell is no work: what lies in its way is no reason to fail.
function jobs.ring(root, queue)
    local bell = keys.bell(root, queue)
    local length = redis.pcall('LPUSH', bell, '1')
    if type(length) == 'number' and length > MAX_BELL then redis.call('LTRIM', bell, 0, MAX_BELL - 1) end
end

local function number_of(job)
    return string.match(job, '(%d+)$')
end

-- Gives back the number of the newest job, which could not be added or was taken back in the same call.
function jobs.uncount(root)
    if redis.call('HINCRBY', keys.meta(root), 'jobs', -1) == 0 then redis.call('HDEL', keys.meta(root), 'jobs') end
end

local function place_new(root, job, number, spec, now)
    redis.call('HSET', keys.job(root, job), 'place', 'ready', 'instance', spec.instance, 'invoke', spec.invoke,
        'src', spec.src, 'queue', spec.queue, 'input', spec.input, 'attempt', 0, 'attempts', spec.attempts,
        'backoff', spec.backoff, 'lease', spec.lease, 'created', now)
    local ok, caught = pcall(redis.call, 'ZADD', keys.ready(root, spec.queue), number, job)
    if ok then return end
    redis.call('DEL', keys.job(root, job))
    error(caught, 0)
end

-- A new job, ready, whose bell the caller rings. `spec`: instance, invoke ('' for work nobody waits for), src, queue,
-- input, attempts, backoff, lease. All or nothing: where it throws, no key has changed.
function jobs.add(root, spec, now)
    local number = redis.call('HINCRBY', keys.meta(root), 'jobs', 1)
    local job = string.match(root, ':(%d+)}$') .. '-' .. number
    local ok, caught = pcall(place_new, root, job, number, spec, now)
    if ok then return job end
    jobs.uncount(root)
    error(caught, 0)
end

-- Moves a job to another place; `score` is its sequence, or the ms its time there ends. It comes to the new place
-- before it leaves the old one: where the new one cannot be written, nothing has changed.
function jobs.move(root, job, queue, from, to, score)
    redis.call('ZADD', places[to](root, queue), score, job)
    redis.pcall('ZREM', places[from](root, queue), job)
    redis.call('HSET', keys.job(root, job), 'place', to)
end

-- Throws where a place cannot be written: asked before steps that could not be taken back.
function jobs.probe(root, queue, place)
    redis.call('ZCARD', places[place](root, queue))
end

-- Never fails: a place that is no sorted set does not hold the job.
function jobs.remove(root, job)
    local row = redis.pcall('HMGET', keys.job(root, job), 'queue', 'place')
    if row.err or not row[1] then return end
    redis.pcall('ZREM', places[row[2]](root, row[1]), job)
    redis.call('DEL', keys.job(root, job))
end

-- The hash of a job as a table; nil when there is none, or something that is no job in its place.
function jobs.read(root, job)
    local flat = redis.pcall('HGETALL', keys.job(root, job))
    if flat.err or #flat == 0 then return nil end
    local row = {}
    for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
    return row.queue and row or nil
end

-- Nothing when the token still holds the job; else why it does not: gone, or taken back.
function jobs.lost(row, token)
    if not row then return 'gone' end
    if row.place ~= 'leased' or row.token ~= token then return 'taken back' end
    return nil
end

function jobs.release(root, job, queue, from)
    jobs.move(root, job, queue, from, 'ready', number_of(job))
    jobs.ring(root, queue)
end

-- Exponential: backoff, twice that, four times that, to an hour at most; a longer backoff stays what it is.
function jobs.delay(root, job, row, now)
    local backoff = tonumber(row.backoff)
    local due = now + math.min(backoff * 2 ^ (tonumber(row.attempt) - 1), math.max(MAX_BACKOFF, backoff))
    jobs.move(root, job, row.queue, row.place, 'delayed', due)
    return due
end

function jobs.bury(root, job, row, now)
    jobs.move(root, job, row.queue, row.place, 'dead', now)
    local dead = keys.dead(root, row.queue)
    local over = redis.call('ZCARD', dead) - MAX_DEAD
    if over > 0 then
        for _, oldest in ipairs(redis.call('ZRANGE', dead, 0, over - 1)) do jobs.remove(root, oldest) end
    end
end

-- Up to `limit` delayed jobs whose time has come become ready.
function jobs.wake(root, queue, now, limit)
    local due = redis.call('ZRANGEBYSCORE', keys.delayed(root, queue), '-inf', now, 'LIMIT', 0, limit)
    for _, job in ipairs(due) do
        if jobs.read(root, job) then
            jobs.release(root, job, queue, 'delayed')
        else
            redis.call('ZREM', keys.delayed(root, queue), job)
        end
    end
    return #due
end

return jobs
