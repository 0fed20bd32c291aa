-- needs: due_times, failures, json, keys, queue_counters, strings
-- Jobs and their places. A job is in exactly one of ready, leased, delayed, dead of its queue, and its own hash
-- says which; every move goes through here.
local jobs = {}

local MAX_BELL = 8
local MAX_DEAD = 10000
local MAX_LOG, MAX_LOGGED = 10, 200 -- attempts; bytes of the error of each
local MAX_BACKOFF = 3600000
local WITHDRAWN_MS = 600000 -- how long it is known of a job that it was taken from the worker that ran it
local PRIORITY, LOWEST = 5, 9 -- 9 goes first
local BAND = 2 ^ 43 -- more jobs than a partition will ever number: scores of one priority lie together
local MAX_CRAVING = 10000

local places = { ready = keys.ready, leased = keys.leased, delayed = keys.delayed, dead = keys.dead }
jobs.places = places
jobs.LOWEST, jobs.BAND = LOWEST, BAND

-- Queues that have work and could not hand it out, as many jobs being leased as may be. Forgotten when the server starts
-- anew: idle workers look again by themselves after a while.
local craving, cravings = {}, 0

-- Wakes idle workers, for `count` new jobs. A bell is no work: what lies in its way is no reason to fail.
function jobs.ring(root, queue, count)
    local bell, rings = keys.bell(root, queue), { '1' }
    for i = 2, math.min(count or 1, MAX_BELL) do rings[i] = '1' end
    local length = redis.pcall('LPUSH', bell, unpack(rings))
    if type(length) == 'number' and length > MAX_BELL then redis.call('LTRIM', bell, 0, MAX_BELL - 1) end
end

-- The queue's bell is to ring when one of its leased jobs comes to an end.
function jobs.crave(root, queue)
    local key = keys.leased(root, queue)
    if craving[key] then return end
    if cravings > MAX_CRAVING then craving, cravings = {}, 0 end
    craving[key], cravings = true, cravings + 1
end

local function relieve(root, queue)
    if cravings == 0 then return end
    local key = keys.leased(root, queue)
    if not craving[key] then return end
    craving[key], cravings = nil, cravings - 1
    jobs.ring(root, queue)
end

jobs.relieve = relieve

local function number_of(job)
    return tonumber(string.match(job, '(%d+)$'))
end

-- What a job sorts by among the ready: first by priority, then by its number, whenever it comes back.
local function rank(job, priority)
    return (LOWEST - (tonumber(priority) or PRIORITY)) * BAND + number_of(job)
end

jobs.rank = rank

function jobs.id(root, number)
    return string.match(root, ':(%d+)}$') .. '-' .. number
end

-- The open job that a unique key stands for; nil where it is free.
function jobs.holder(root, queue, unique)
    local job = redis.call('GET', keys.unique(root, queue, unique))
    if not job then return nil end
    local place = redis.call('HGET', keys.job(root, job), 'place')
    return place and place ~= 'dead' and job or nil
end

-- A unique key is free again, if it was this job's.
local function free(root, queue, unique, job)
    local key = keys.unique(root, queue, unique)
    if redis.pcall('GET', key) == job then redis.pcall('DEL', key) end
end

-- Gives back the number of the newest job, which could not be added or was taken back in the same call.
function jobs.uncount(root)
    if redis.call('HINCRBY', keys.meta(root), 'jobs', -1) == 0 then redis.call('HDEL', keys.meta(root), 'jobs') end
end

-- What a job's hash leaves out, being so for most.
jobs.DEFAULT = { attempts = 3, backoff = 1000, lease = 30000, priority = PRIORITY, timeout = 0, unique = '', stop = '',
    input = '', jitter = true }

-- Those words of a job's hash that are not as for most: names and values in turn.
function jobs.unusual(spec)
    local words, count = {}, 0
    for name, usual in pairs(jobs.DEFAULT) do
        local value = spec[name]
        if value ~= nil and value ~= usual then
            words[count + 1], words[count + 2] = name, value or '0'
            count = count + 2
        end
    end
    return words
end

-- The words of its hash: few, for every step that asks for work writes them.
local function describe(spec, place, now)
    local words = { 'place', place, 'src', spec.src, 'queue', spec.queue, 'created', now }
    local count = 8
    if spec.instance then
        words[9], words[10], count = 'instance', spec.instance, 10
        if spec.invoke ~= '' then words[11], words[12], count = 'invoke', spec.invoke, 12 end
    end
    local unusual = spec.unusual or jobs.unusual(spec)
    for i = 1, #unusual do words[count + i] = unusual[i] end
    count = count + #unusual
    if place == 'delayed' then words[count + 1], words[count + 2] = 'due', now + spec.delay end
    return words
end

local function place_new(root, job, spec, now)
    local later = (spec.delay or 0) > 0
    redis.call('HSET', keys.job(root, job), unpack(describe(spec, later and 'delayed' or 'ready', now)))
    local ok, caught
    if later then
        ok, caught = pcall(redis.call, 'ZADD', keys.delayed(root, spec.queue), now + spec.delay, job)
        due_times.note(root, now + spec.delay, now)
    else
        ok, caught = pcall(redis.call, 'ZADD', keys.ready(root, spec.queue), rank(job, spec.priority), job)
    end
    if ok then return end
    redis.call('DEL', keys.job(root, job))
    error(caught, 0)
end

-- A new job, whose bell the caller rings. `spec`: instance, invoke (both empty for work nobody waits for), src, queue, input,
-- and where they are not as by default attempts, backoff, lease, priority, timeout, delay, unique, jitter (false), stop;
-- `unusual` is what jobs.unusual would give, where that is known. `going`: ids, between spaces, of jobs that end in this step
-- and no longer hold their unique keys.
-- Answers the job and, where its key has an open one already, that job and true. All or nothing: where it throws, no key
-- has changed. The third answer is who held the key before, for taking this back.
function jobs.add(root, spec, now, going)
    local holder
    if spec.unique then
        holder = jobs.holder(root, spec.queue, spec.unique)
        if holder and not (going and string.find(going, ' ' .. holder .. ' ', 1, true)) then return holder, true end
    end
    local number = redis.call('HINCRBY', keys.meta(root), 'jobs', 1)
    local job = jobs.id(root, number)
    local ok, caught = pcall(place_new, root, job, spec, now)
    if not ok then
        jobs.uncount(root)
        error(caught, 0)
    end
    if spec.unique then redis.call('SET', keys.unique(root, spec.queue, spec.unique), job) end
    return job, false, holder
end

-- A job that was added in this very call, and who held its unique key before.
function jobs.take_back(root, job, spec, holder)
    jobs.remove(root, job)
    jobs.uncount(root)
    if holder then redis.call('SET', keys.unique(root, spec.queue, spec.unique), holder) end
end

-- Moves a job to another place; `score` is its rank, or the ms its time there ends. It comes to the new place
-- before it leaves the old one: where the new one cannot be written, nothing has changed.
function jobs.move(root, job, queue, from, to, score, ...)
    redis.call('ZADD', places[to](root, queue), score, job)
    redis.pcall('ZREM', places[from](root, queue), job)
    redis.call('HSET', keys.job(root, job), 'place', to, ...)
    if from == 'leased' then relieve(root, queue) end
    if from == 'dead' then jobs.absolve(root, job) end
end

-- A dead job is wrong with its instance,
function jobs.blame(root, job)
    local row = redis.pcall('HMGET', keys.job(root, job), 'instance', 'kind', 'error')
    if row.err or not row[1] then return end
    failures.note(root, row[1], job, row[2] or '', row[3] or '')
end

-- until it is dead no more.
function jobs.absolve(root, job)
    local instance = redis.pcall('HGET', keys.job(root, job), 'instance')
    if type(instance) == 'string' then failures.clear(root, instance, job) end
end

-- Throws where a place cannot be written: asked before steps that could not be taken back.
function jobs.probe(root, queue, place)
    redis.call('ZCARD', places[place](root, queue))
end

-- Never fails: a place that is no sorted set does not hold the job.
function jobs.erase(root, job, row)
    redis.pcall('ZREM', places[row.place](root, row.queue), job)
    if row.place == 'dead' then jobs.absolve(root, job) end
    redis.call('DEL', keys.job(root, job))
    if row.unique then free(root, row.queue, row.unique, job) end
    if row.place == 'leased' then relieve(root, row.queue) end
end

-- The same for a job that may be anywhere. `why`: as what it is counted, 'withdrawn' or 'purged'; a worker that runs it
-- learns so.
function jobs.remove(root, job, why)
    local found = redis.pcall('HMGET', keys.job(root, job), 'queue', 'place', 'unique')
    if found.err or not found[1] then return end
    jobs.erase(root, job, { queue = found[1], place = found[2], unique = found[3] })
    if not why then return end
    queue_counters.count(root, found[1], why)
    if found[2] == 'leased' then redis.pcall('SET', keys.withdrawn(root, job), 1, 'NX', 'PX', WITHDRAWN_MS) end
end

-- A flat list of fields and values as a table; nil for what is no job.
function jobs.row(flat)
    if flat.err or #flat == 0 then return nil end
    local row = { place = nil, src = nil, queue = nil, created = nil, instance = nil, invoke = nil } -- room for all
    for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
    return row.queue and row or nil
end

-- The hash of a job as a table; nil when there is none, or something that is no job in its place.
function jobs.read(root, job)
    return jobs.row(redis.pcall('HGETALL', keys.job(root, job)))
end

-- Is the job's last attempt for failing once more?
function jobs.spent(row)
    return tonumber(row.attempt) >= tonumber(row.attempts or jobs.DEFAULT.attempts)
end

-- Some fields of a job that the token holds, as a table, `names` being a list of them that begins with queue and token.
-- Nothing and why, where it does not: 'withdrawn', 'gone' (finished, or never was) or 'taken back'. A job that is not leased
-- has no token.
function jobs.held(root, job, token, names)
    local found = redis.pcall('HMGET', keys.job(root, job), unpack(names))
    if found.err or not found[1] then
        return nil, redis.call('EXISTS', keys.withdrawn(root, job)) == 1 and 'withdrawn' or 'gone'
    end
    if found[2] ~= token or token == '' then return nil, 'taken back' end
    local row = { place = 'leased' }
    for i = 1, #names do row[names[i]] = found[i] or nil end
    return row
end

-- The attempts that have ended, as the job's hash keeps them, with the one that ends now: JSON of the latest few. `outcome`:
-- failed, lost, timeout or handed back; `failure`: error and kind.
function jobs.logged(row, now, outcome, failure)
    local ok, ended = pcall(cjson.decode, row.log or '[]')
    if not ok or type(ended) ~= 'table' then ended = {} end
    ended[#ended + 1] = { attempt = tonumber(row.attempt), worker = row.worker or '', taken = tonumber(row.taken or 0),
        ended = now, outcome = outcome, kind = failure.kind, error = strings.cut(failure.error, MAX_LOGGED) }
    if #ended > MAX_LOG then table.remove(ended, 1) end
    return cjson.encode(ended)
end

-- To the ready, with what else is to be written.
function jobs.release(root, job, row, from, now, ...)
    jobs.move(root, job, row.queue, from, 'ready', rank(job, row.priority), 'due', now, ...)
    jobs.ring(root, row.queue)
end

function jobs.postpone(root, job, row, from, now, due, ...)
    jobs.move(root, job, row.queue, from, 'delayed', due, 'due', due, ...)
    due_times.note(root, due, now)
end

-- Exponential: backoff, twice that, four times that, to an hour at most; a longer backoff stays what it is. With jitter,
-- between half of it and all, so that what failed together does not come back together.
function jobs.backoff(job, row)
    local backoff = tonumber(row.backoff or jobs.DEFAULT.backoff)
    local wait = math.min(backoff * 2 ^ (tonumber(row.attempt) - 1), math.max(MAX_BACKOFF, backoff))
    if row.jitter == '0' then return wait end
    local chance = tonumber(string.sub(redis.sha1hex(job .. ' ' .. row.token), 1, 8), 16) / 2 ^ 32
    return math.ceil(wait * (1 - chance / 2))
end

function jobs.bury(root, job, row, now, ...)
    jobs.move(root, job, row.queue, row.place, 'dead', now, 'finished', now, 'token', '', 'log', row.log or '[]', ...)
    if row.unique then free(root, row.queue, row.unique, job) end
    queue_counters.count(root, row.queue, 'dead')
    jobs.blame(root, job)
    local dead = keys.dead(root, row.queue)
    local over = redis.call('ZCARD', dead) - MAX_DEAD
    if over > 0 then
        for _, oldest in ipairs(redis.call('ZRANGE', dead, 0, over - 1)) do jobs.remove(root, oldest, 'purged') end
    end
end

-- Up to `limit` delayed jobs whose time has come become ready.
function jobs.wake(root, queue, now, limit)
    local due = redis.call('ZRANGEBYSCORE', keys.delayed(root, queue), '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
    if not due[1] then return 0 end
    local ready, gone, woken = {}, {}, 0
    for i = 1, #due, 2 do
        local job = due[i]
        local row = redis.pcall('HMGET', keys.job(root, job), 'queue', 'priority')
        gone[#gone + 1] = job
        if not row.err and row[1] then
            ready[#ready + 1], ready[#ready + 2] = rank(job, row[2]), job
            woken = woken + 1
        end
    end
    if woken > 0 then redis.call('ZADD', keys.ready(root, queue), unpack(ready)) end
    for i = 2, #ready, 2 do redis.call('HSET', keys.job(root, ready[i]), 'place', 'ready') end
    redis.call('ZREM', keys.delayed(root, queue), unpack(gone))
    if woken > 0 then jobs.ring(root, queue, woken) end
    return woken
end

return jobs
